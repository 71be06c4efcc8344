package integration

import (
	"syscall"
	"testing"
)

// TestInstance has one instance do, in turn, what needs none of its own, and ends it as Ctrl-C
// does. etcd goes back last, because all components start again then.
func TestInstance(t *testing.T) {
	i := start(t, "--name=shared", "--fleet=p3")
	for _, part := range []struct {
		name string
		test func(*testing.T, *instance)
	}{
		{"version", testVersion},
		{"service account", testServiceAccount},
		{"nodes", testNodes},
		{"pools", testPools},
		{"Ray", testRay},
		{"etcd goes back", testEtcdGoesBack},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, i) })
	}
	i.endsBy(t, func() { signal(t, i.cmd.Process.Pid, syscall.SIGINT) })
}
