package integration

import (
	"syscall"
	"testing"
)

// TestInstance has one instance do, in turn, what needs none of its own, and ends it as Ctrl-C
// does. etcd goes back last, because all components start again then. A part that fails may
// leave the instance in any state, so the parts after it are skipped.
func TestInstance(t *testing.T) {
	i := start(t, "--name=shared", "--fleet=p3")
	failed := ""
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
		passed := t.Run(part.name, func(t *testing.T) {
			if failed != "" {
				t.Skipf("not run: %q failed before it, on the same instance", failed)
			}
			part.test(t, i)
		})
		if !passed {
			failed = part.name
		}
	}
	if failed != "" {
		return
	}
	i.endsBy(t, func() { signal(t, i.cmd.Process.Pid, syscall.SIGINT) })
}
