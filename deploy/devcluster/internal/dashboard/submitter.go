package dashboard

import (
	"context"
	"fmt"
	"time"

	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	submitterWorkers = 4
	// clusterPollInterval is how soon a submitter is looked at again whose RayJob
	// is not in the cache yet.
	clusterPollInterval = 500 * time.Millisecond
)

// SetupWithManager adds the controller that plays the pods which submit jobs: as
// in Ray, a submitter submits when it starts to run, follows its job's log, and
// ends with the job. It is a pod of its own in K8sJobMode and a container beside
// the head in SidecarMode; KubeRay gives it the job's id in the environment.
func (j *Jobs) SetupWithManager(mgr ctrl.Manager) error {
	submitters := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		name, _ := submission(obj.(*corev1.Pod))
		return name != ""
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("job-submitter").
		For(&corev1.Pod{}).
		WithEventFilter(submitters).
		WithOptions(controller.Options{MaxConcurrentReconciles: submitterWorkers}).
		Complete(reconcile.Func(j.reconcileSubmitter))
}

// submission returns the container of a pod that submits a job, and the job's id.
func submission(pod *corev1.Pod) (container, id string) {
	for _, c := range pod.Spec.Containers {
		for _, env := range c.Env {
			if env.Name == utils.RAY_JOB_SUBMISSION_ID && env.Value != "" {
				return c.Name, env.Value
			}
		}
	}
	return "", ""
}

func (j *Jobs) reconcileSubmitter(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var pod corev1.Pod
	if err := j.client.Get(ctx, request.NamespacedName, &pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	container, id := submission(&pod)
	if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || terminated(&pod, container) {
		return reconcile.Result{}, nil
	}
	rayJob, err := j.rayJob(ctx, pod.Namespace, id)
	if err != nil {
		return reconcile.Result{}, err
	}
	if rayJob == nil || rayJob.Status.RayClusterName == "" {
		return reconcile.Result{RequeueAfter: clusterPollInterval}, nil
	}
	key := jobKey{cluster: types.NamespacedName{Namespace: pod.Namespace, Name: rayJob.Status.RayClusterName}, id: id}
	j.submit(key)
	p, _, err := j.look(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	if p.ended.IsZero() {
		return reconcile.Result{RequeueAfter: p.remaining}, nil
	}
	return reconcile.Result{}, j.endSubmitter(ctx, &pod, container)
}

func terminated(pod *corev1.Pod, container string) bool {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container {
			return status.State.Terminated != nil
		}
	}
	return false
}

// endSubmitter ends a submitter whose job has ended. Its exit code is 0 even if
// the job failed: it has followed the log to its end. A pod that failed would be
// retried by its Job, and the RayJob would not end before the last retry.
func (j *Jobs) endSubmitter(ctx context.Context, pod *corev1.Pod, container string) error {
	before := pod.DeepCopy()
	now := metav1.Now()
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if !isJobPod(pod) && status.Name != container {
			continue // The head goes on beside a sidecar.
		}
		started := now
		if status.State.Running != nil {
			started = status.State.Running.StartedAt
		}
		status.Ready = false
		status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: started, FinishedAt: now,
		}}
	}
	if isJobPod(pod) {
		pod.Status.Phase = corev1.PodSucceeded
		for i := range pod.Status.Conditions {
			c := &pod.Status.Conditions[i]
			if c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
				c.Status, c.Reason, c.LastTransitionTime = corev1.ConditionFalse, "PodCompleted", now
			}
		}
	}
	err := j.client.Status().Patch(ctx, pod, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ending the submitter %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

func isJobPod(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job"
}
