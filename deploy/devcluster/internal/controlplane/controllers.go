package controlplane

import (
	"context"
	"fmt"
	"os"
	"strings"

	"k8s.io/klog/v2"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"muster.dev/muster/deploy/devcluster/internal/fleet"
)

// controllers are those whose work a user of the cluster can see. What is left
// out serves volumes, clouds, certificates and autoscaling; claims of volumes can
// be deleted.
var controllers = []string{
	"cronjob-controller",
	"daemonset-controller",
	"deployment-controller",
	"endpointslice-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"node-lifecycle-controller",
	"persistentvolumeclaim-protection-controller",
	"pod-garbage-collector-controller",
	"replicaset-controller",
	"resourcequota-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"clusterrole-aggregation-controller",
	"statefulset-controller",
	"taint-eviction-controller",
	"ttl-after-finished-controller",
}

// ControllerManager is what the controller manager needs.
type ControllerManager struct {
	Kubeconfig   string
	CAFile       string // CAFile is published to every namespace.
	TokenKeyFile string
}

// RunControllerManager runs kube-controller-manager until its process ends.
func RunControllerManager(ctx context.Context, c ControllerManager) error {
	cmd := controllermanager.NewControllerManagerCommand()
	cmd.SetArgs([]string{
		"--kubeconfig=" + c.Kubeconfig,
		"--authentication-kubeconfig=" + c.Kubeconfig,
		"--authorization-kubeconfig=" + c.Kubeconfig,
		"--root-ca-file=" + c.CAFile,
		"--service-account-private-key-file=" + c.TokenKeyFile,
		"--controllers=" + strings.Join(controllers, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
		"--concurrent-gc-syncs=20",
		"--concurrent-job-syncs=20",
		"--concurrent-namespace-syncs=20",
		// A broken node is marked by the command that breaks it. The grace
		// period must only be longer than a few renewals of a lease.
		fmt.Sprintf("--node-monitor-grace-period=%s", 2*fleet.LeaseDuration),
		"--node-monitor-period=1s",
		// Nodes are broken on purpose, so there is no outage to be careful in.
		"--node-eviction-rate=1000",
		"--secondary-node-eviction-rate=1000",
	})
	if err := cmd.ExecuteContext(ctx); err != nil {
		return fmt.Errorf("running the controller manager: %w", err)
	}
	return nil
}

const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: %q
  qps: 2000
  burst: 4000
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 2
`

// RunScheduler runs kube-scheduler, with its configuration at configFile, until
// its process ends.
func RunScheduler(ctx context.Context, kubeconfig, configFile string) error {
	if err := os.WriteFile(configFile, fmt.Appendf(nil, schedulerConfig, kubeconfig), 0o600); err != nil {
		return fmt.Errorf("running the scheduler: %w", err)
	}
	cmd := scheduler.NewSchedulerCommand()
	cmd.SetArgs([]string{
		"--config=" + configFile,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--secure-port=0",
	})
	if err := cmd.ExecuteContext(ctx); err != nil {
		return fmt.Errorf("running the scheduler: %w", err)
	}
	klog.Flush()
	return nil
}
