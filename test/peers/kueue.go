package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"muster.dev/muster/test/bench/figures"
)

const (
	kueueVersion = "v0.15.0"
	kueueModule  = "sigs.k8s.io/kueue"
	kueueLabel   = "kueue.x-k8s.io/queue-name"
	// pinned is the module that pins it, from the root of the repository.
	pinned = "test/peers/kueue"
)

// build builds Kueue's manager from the pinned module.
func build(ctx context.Context, dir string) (string, error) {
	binary, err := filepath.Abs(filepath.Join(dir, "kueue"))
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, kueueModule+"/cmd/kueue")
	command.Dir, command.Env, command.Stderr = pinned, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0"), os.Stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("build Kueue in %s: %w", pinned, err)
	}
	return binary, nil
}

// sources returns the directory of Kueue's module, which has its manifests.
func sources(ctx context.Context) (string, error) {
	command := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", kueueModule)
	command.Dir, command.Env, command.Stderr = pinned, append(os.Environ(), "GOWORK=off"), os.Stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("find Kueue's module from %s: %w", pinned, err)
	}
	return strings.TrimSpace(string(output)), nil
}

// openKueue installs Kueue on a fresh cluster and runs its manager.
func openKueue(ctx context.Context, o options, of kind, queues, gpus int) (_ *site, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s, err := openCluster(ctx, o, of, "kueue")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	dir, err := os.MkdirTemp("", "muster-peers-")
	if err != nil {
		return nil, err
	}
	s.stops = append(s.stops, func() { _ = os.RemoveAll(dir) })
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	if err := s.installKueue(ctx, ports[0]); err != nil {
		return nil, err
	}
	if err := s.runKueue(ctx, o, dir, ports); err != nil {
		return nil, err
	}
	s.label, s.waiting = kueueLabel, s.pendingInKueue
	return s, s.kueueQueues(ctx, queues, gpus)
}

// freePorts returns ports that are free now.
func freePorts(count int) (ports []int, err error) {
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// configuration is Kueue's own default for one kind of gangs, without the limits on its requests
// to the API server, and with the tools for people left out.
const configuration = `apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {healthProbeBindAddress: "127.0.0.1:%[2]d"}
metrics: {bindAddress: "127.0.0.1:%[3]d"}
webhook: {port: %[1]d, host: 127.0.0.1, certDir: %[4]s}
leaderElection: {leaderElect: false}
clientConnection: {qps: -1, burst: 0}
controller:
  groupKindConcurrency:
    Workload.kueue.x-k8s.io: 5
    LocalQueue.kueue.x-k8s.io: 1
    ClusterQueue.kueue.x-k8s.io: 1
    RayCluster.ray.io: 5
    RayJob.ray.io: 5
    AppWrapper.workload.codeflare.dev: 5
integrations:
  frameworks: [%[5]q]
`

// runKueue starts the manager and returns when it is ready.
func (s *site) runKueue(ctx context.Context, o options, dir string, ports []int) error {
	certificates := filepath.Join(dir, "certificates")
	file := filepath.Join(dir, "kueue.yaml")
	if err := errors.Join(os.Mkdir(certificates, 0o700),
		os.WriteFile(file, fmt.Appendf(nil, configuration, ports[0], ports[1], ports[2], certificates, s.kind.framework), 0o600)); err != nil {
		return err
	}
	var log bytes.Buffer
	command := exec.Command(o.kueue, "--config", file, "--kubeconfig", s.cluster.Kubeconfig, "--feature-gates=VisibilityOnDemand=false", "--zap-log-level=error")
	command.Stdout, command.Stderr = &log, &log
	if o.printKueue {
		command.Stdout, command.Stderr = os.Stderr, os.Stderr
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start Kueue: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	s.stops = append(s.stops, func() {
		_ = command.Process.Kill()
		<-ended
	})
	s.used = func() time.Duration { return figures.ProcessTime(command.Process.Pid) }
	fail := func(err error) error { return fmt.Errorf("start Kueue: %w\n%s", err, log.String()) }
	if err := s.mountCertificates(ctx, certificates); err != nil {
		return fail(err)
	}
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-ended:
			ended <- err
			return false, fmt.Errorf("it ended: %w", err)
		default:
		}
		connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", ports[0]))
		if err != nil {
			return false, nil // asked again
		}
		return true, connection.Close()
	})
	if err != nil {
		return fail(err)
	}
	return nil
}

var (
	kueueQueueResources = map[string]schema.GroupVersionResource{
		"ResourceFlavor": kueueResource("resourceflavors"), "ClusterQueue": kueueResource("clusterqueues"), "LocalQueue": kueueResource("localqueues"),
	}
)

func kueueResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: name}
}

// kueueQueues creates the queues; the first may be refused until the webhooks answer.
func (s *site) kueueQueues(ctx context.Context, queues, gpus int) error {
	flavor := "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: default-flavor}\n"
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return s.create(ctx, kueueQueueResources["ResourceFlavor"], "", flavor) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("create the first object of Kueue (%v): %w", s.create(ctx, kueueQueueResources["ResourceFlavor"], "", flavor), err)
	}
	for i := range queues {
		if err := s.create(ctx, kueueQueueResources["ClusterQueue"], "", fmt.Sprintf(`apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: %s}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - name: default-flavor
      resources: [{name: cpu, nominalQuota: "100000"}, {name: memory, nominalQuota: 1000Ti}, {name: nvidia.com/gpu, nominalQuota: "%d"}]
`, queueName(i), gpus)); err != nil {
			return err
		}
		if err := s.create(ctx, kueueQueueResources["LocalQueue"], namespace, fmt.Sprintf(
			"apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {name: %[1]s}\nspec: {clusterQueue: %[1]s}\n", queueName(i))); err != nil {
			return err
		}
	}
	return nil
}

// pendingInKueue adds up what the ClusterQueues say of themselves.
func (s *site) pendingInKueue(ctx context.Context) (pending int, err error) {
	list, err := s.dynamic.Resource(kueueQueueResources["ClusterQueue"]).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("list ClusterQueues: %w", err)
	}
	for _, q := range list.Items {
		of, _, err := unstructured.NestedInt64(q.Object, "status", "pendingWorkloads")
		if err != nil {
			return 0, fmt.Errorf("read ClusterQueue %q: %w", q.GetName(), err)
		}
		pending += int(of)
	}
	return pending, nil
}
