// Package kubelet plays the nodes of a dev cluster and what runs on them, by
// means of KWOK: bound pods become Running and Ready at once, deleted ones vanish
// at once, and the nodes' heartbeats go on until a node is broken.
package kubelet

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	kwok "sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"

	"muster.dev/muster/deploy/devcluster/internal/fleet"
	"muster.dev/muster/deploy/devcluster/internal/process"
)

const (
	podNetwork     = "10.128.0.0/9"
	podWorkers     = 16
	nodeWorkers    = 4
	podSyncWorkers = 4
)

// Run plays the nodes until ctx is done. It reports readiness once it watches.
func Run(ctx context.Context, config *rest.Config) error {
	ctx = log.NewContext(ctx, log.NewLogger(os.Stderr, log.LevelWarn))
	stages, err := loadStages()
	if err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // As many requests as the API server takes.
	typedConfig := rest.CopyConfig(config)
	typedConfig.ContentType = runtime.ContentTypeProtobuf
	typedConfig.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	typed, err := kubernetes.NewForConfig(typedConfig)
	if err != nil {
		return fmt.Errorf("making the client of the nodes: %w", err)
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making the dynamic client of the nodes: %w", err)
	}
	controller, err := kwok.NewController(kwok.Config{
		Clock:                        clock.RealClock{},
		TypedClient:                  typed,
		DynamicClient:                untyped,
		RESTClient:                   typed.CoreV1().RESTClient(),
		ManageNodesWithLabelSelector: fleet.ManagedLabel + "=" + fleet.ManagedRunning,
		CIDR:                         podNetwork,
		LocalStages:                  stages,
		PodPlayStageParallelism:      podWorkers,
		NodePlayStageParallelism:     nodeWorkers,
		PodsOnNodeSyncParallelism:    podSyncWorkers,
		// KWOK's own leases elect among several KWOKs, and a pod that is bound
		// before the election of its node is forgotten. See leases.go.
		NodeLeaseDurationSeconds: 0,
		ID:                       "devcluster",
	})
	if err != nil {
		return fmt.Errorf("making the nodes' controller: %w", err)
	}
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("starting the nodes' controller: %w", err)
	}
	if err := process.ReportReady(""); err != nil {
		return err
	}
	newLeases(typed).run(ctx)
	return nil
}
