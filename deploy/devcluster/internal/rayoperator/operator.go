// Package rayoperator runs the KubeRay operator of a dev cluster: KubeRay's own
// controllers as its main function wires them, save that the calls to the
// dashboards of Ray clusters go to the stand-in of package dashboard.
package rayoperator

import (
	"context"
	"fmt"
	"os"

	routev1 "github.com/openshift/api/route/v1"
	configapi "github.com/ray-project/kuberay/ray-operator/apis/config/v1alpha1"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/batchscheduler"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	"go.uber.org/zap/zapcore"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"muster.dev/muster/deploy/devcluster/internal/dashboard"
	"muster.dev/muster/deploy/devcluster/internal/process"
)

const (
	concurrency = 10
	qps         = 1000
	burst       = 2000
)

// Run waits for KubeRay's definitions and runs its controllers until ctx is done.
// It reports readiness once their caches are in step.
func Run(ctx context.Context, config *rest.Config) error {
	logger := zap.New(zap.WriteTo(os.Stderr), zap.Level(zapcore.InfoLevel))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = qps, burst
	config.UserAgent = "kuberay-operator/" + utils.KUBERAY_VERSION

	if err := WaitServed(ctx, config); err != nil {
		return err
	}
	logger.Info("definitions are served")
	if err := utilfeature.DefaultMutableFeatureGate.Set("RayCronJob=true"); err != nil {
		return fmt.Errorf("setting KubeRay's feature gates: %w", err)
	}
	mgr, err := newManager(config)
	if err != nil {
		return err
	}
	if err := addControllers(ctx, mgr, config); err != nil {
		return err
	}
	go func() {
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return // The manager returns the reason.
		}
		logger.Info("caches are in step")
		if err := process.ReportReady(""); err != nil {
			logger.Error(err, "cannot report readiness")
		}
	}()
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the KubeRay operator: %w", err)
	}
	return nil
}

func newManager(config *rest.Config) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, rayv1.AddToScheme, routev1.Install, configapi.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme of the KubeRay operator: %w", err)
		}
	}
	ours := labels.SelectorFromSet(labels.Set{utils.KubernetesCreatedByLabelKey: utils.ComponentName})
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{
			ByObject: map[client.Object]cache.ByObject{&batchv1.Job{}: {Label: ours}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager of the KubeRay operator: %w", err)
	}
	return mgr, nil
}

func addControllers(ctx context.Context, mgr ctrl.Manager, config *rest.Config) error {
	schedulers, err := batchscheduler.NewSchedulerManager(ctx, configapi.Configuration{}, config, mgr.GetClient())
	if err != nil {
		return fmt.Errorf("making KubeRay's batch scheduler manager: %w", err)
	}
	jobs, err := dashboard.New(ctx, mgr)
	if err != nil {
		return err
	}
	clusters := ray.RayClusterReconcilerOptions{BatchSchedulerManager: schedulers}
	if err := ray.NewReconciler(ctx, mgr, clusters).SetupWithManager(mgr, concurrency); err != nil {
		return fmt.Errorf("adding the RayCluster controller: %w", err)
	}
	if err := ray.NewRayServiceReconciler(ctx, mgr, jobs).SetupWithManager(mgr, concurrency); err != nil {
		return fmt.Errorf("adding the RayService controller: %w", err)
	}
	options := ray.RayJobReconcilerOptions{BatchSchedulerManager: schedulers}
	if err := ray.NewRayJobReconciler(ctx, mgr, options, jobs).SetupWithManager(mgr, concurrency); err != nil {
		return fmt.Errorf("adding the RayJob controller: %w", err)
	}
	if err := ray.NewRayCronJobReconciler(mgr).SetupWithManager(mgr, concurrency); err != nil {
		return fmt.Errorf("adding the RayCronJob controller: %w", err)
	}
	if err := jobs.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("adding the controller of job submitters: %w", err)
	}
	return nil
}
