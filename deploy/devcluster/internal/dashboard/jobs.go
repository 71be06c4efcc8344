// Package dashboard stands in for the dashboards of Ray clusters. No Ray runs in
// a dev cluster, but KubeRay asks each cluster's dashboard how its job is doing;
// here it asks the stand-in, in its own process. Annotations of the RayJob set the
// outcome of its job.
package dashboard

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	utiltypes "github.com/ray-project/kuberay/ray-operator/controllers/ray/utils/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pendingTime is how long a submitted job is PENDING: Ray starts its driver.
const pendingTime = 200 * time.Millisecond

// jobIDIndex finds the RayJob of a submission.
const jobIDIndex = "status.jobId"

// Jobs has the jobs submitted to all Ray clusters, and their Serve
// applications. It is the ClientProvider of KubeRay's controllers.
type Jobs struct {
	client client.Client
	now    func() time.Time

	mu    sync.Mutex
	jobs  map[jobKey]*job
	serve map[types.NamespacedName]serveConfig // By RayCluster.
}

// jobKey names a job: its submission to one Ray cluster.
type jobKey struct {
	cluster types.NamespacedName
	id      string
}

type job struct {
	submitted time.Time
	stopped   time.Time // stopped is zero unless the job was stopped.
	plan      plan      // plan is the RayJob's last plan.
}

// New returns a stand-in without jobs that reads RayJobs through mgr.
func New(ctx context.Context, mgr ctrl.Manager) (*Jobs, error) {
	err := mgr.GetFieldIndexer().IndexField(ctx, &rayv1.RayJob{}, jobIDIndex, func(obj client.Object) []string {
		return []string{obj.(*rayv1.RayJob).Status.JobId}
	})
	if err != nil {
		return nil, fmt.Errorf("indexing RayJobs by %s: %w", jobIDIndex, err)
	}
	return newJobs(mgr.GetClient(), time.Now), nil
}

func newJobs(c client.Client, now func() time.Time) *Jobs {
	return &Jobs{
		client: c, now: now,
		jobs:  make(map[jobKey]*job),
		serve: make(map[types.NamespacedName]serveConfig),
	}
}

// submit records a job. Submitting it again changes nothing.
func (j *Jobs) submit(key jobKey) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.jobs[key] == nil {
		j.jobs[key] = &job{submitted: j.now(), plan: defaultPlan}
	}
}

// stop ends a job that runs.
func (j *Jobs) stop(key jobKey) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if found := j.jobs[key]; found != nil && found.stopped.IsZero() {
		found.stopped = j.now()
	}
}

// progress is the state of a job at one time.
type progress struct {
	status    rayv1.JobStatus
	submitted time.Time
	ended     time.Time     // ended is zero as long as the job goes on.
	remaining time.Duration // remaining is how long it will go on.
	message   string
}

// look returns the progress of a submitted job. It reads the plan every time, so that a
// RayJob's annotations can change while its job runs.
func (j *Jobs) look(ctx context.Context, key jobKey) (progress, bool, error) {
	rayJob, err := j.rayJob(ctx, key.cluster.Namespace, key.id)
	if err != nil {
		return progress{}, false, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	found := j.jobs[key]
	if found == nil {
		return progress{}, false, nil
	}
	if rayJob != nil {
		if found.plan, err = planOf(rayJob); err != nil {
			return progress{}, false, err
		}
	}
	return found.progress(j.now()), true, nil
}

func (j *job) progress(now time.Time) progress {
	p := progress{submitted: j.submitted, status: rayv1.JobStatusPending, message: "Job is starting."}
	end := j.submitted.Add(j.plan.duration)
	switch age := now.Sub(j.submitted); {
	case !j.stopped.IsZero() && j.stopped.Before(end):
		p.status, p.ended, p.message = rayv1.JobStatusStopped, j.stopped, "Job was stopped."
	case !now.Before(end):
		p.status, p.ended, p.message = j.plan.outcome, end, j.plan.message()
	default:
		p.remaining = end.Sub(now)
		if age >= pendingTime {
			p.status, p.message = rayv1.JobStatusRunning, "Job is currently running."
		}
	}
	return p
}

// rayJob returns the RayJob of a submission, nil when there is none any more.
func (j *Jobs) rayJob(ctx context.Context, namespace, id string) (*rayv1.RayJob, error) {
	var found rayv1.RayJobList
	err := j.client.List(ctx, &found, client.InNamespace(namespace), client.MatchingFields{jobIDIndex: id})
	if err != nil {
		return nil, fmt.Errorf("looking for the RayJob of the submission %s/%s: %w", namespace, id, err)
	}
	if len(found.Items) == 0 {
		return nil, nil
	}
	return &found.Items[0], nil
}

// info returns the progress of a job in the form of the dashboard's API.
func (j *Jobs) info(ctx context.Context, key jobKey) (*utiltypes.RayJobInfo, error) {
	p, ok, err := j.look(ctx, key)
	if err != nil {
		return nil, err
	}
	if !ok {
		// KubeRay's client turns the dashboard's 404 into this.
		return nil, apierrors.NewBadRequest("Job " + key.id + " does not exist on the cluster")
	}
	info := &utiltypes.RayJobInfo{
		JobStatus: p.status, JobId: key.id, SubmissionId: key.id, Message: p.message,
		StartTime: uint64(p.submitted.UnixMilli()),
	}
	if !p.ended.IsZero() {
		info.EndTime = uint64(p.ended.UnixMilli())
	}
	return info, nil
}

// plan is the outcome and duration of a job.
type plan struct {
	outcome  rayv1.JobStatus
	duration time.Duration
}

// Annotations of a RayJob, or of the template that makes it.
const (
	// OutcomeAnnotation is "succeeded", "failed" or "stopped". A list separated
	// by commas gives the outcomes of successive attempts, the last one that of
	// all further attempts.
	OutcomeAnnotation = "devcluster.muster.dev/job-outcome"
	// DurationAnnotation is the time from the submission to the end, as "2s".
	DurationAnnotation = "devcluster.muster.dev/job-duration"
)

var (
	defaultPlan = plan{outcome: rayv1.JobStatusSucceeded, duration: time.Second}
	outcomes    = map[string]rayv1.JobStatus{
		"succeeded": rayv1.JobStatusSucceeded,
		"failed":    rayv1.JobStatusFailed,
		"stopped":   rayv1.JobStatusStopped,
	}
)

func planOf(rayJob *rayv1.RayJob) (plan, error) {
	p := defaultPlan
	if text, ok := rayJob.Annotations[OutcomeAnnotation]; ok {
		attempts := strings.Split(text, ",")
		attempt := 0
		if rayJob.Status.Failed != nil {
			attempt = min(int(*rayJob.Status.Failed), len(attempts)-1)
		}
		if p.outcome, ok = outcomes[strings.ToLower(strings.TrimSpace(attempts[attempt]))]; !ok {
			return plan{}, annotationError(rayJob, OutcomeAnnotation, fmt.Errorf("must be succeeded, failed or stopped"))
		}
	}
	if text, ok := rayJob.Annotations[DurationAnnotation]; ok {
		duration, err := time.ParseDuration(text)
		if err != nil || duration < 0 {
			return plan{}, annotationError(rayJob, DurationAnnotation, fmt.Errorf("must be a duration such as 2s"))
		}
		p.duration = duration
	}
	return p, nil
}

func annotationError(rayJob *rayv1.RayJob, key string, err error) error {
	return fmt.Errorf("RayJob %s/%s: annotation %s=%q: %w",
		rayJob.Namespace, rayJob.Name, key, rayJob.Annotations[key], err)
}

func (p plan) message() string {
	switch p.outcome {
	case rayv1.JobStatusSucceeded:
		return "Job finished successfully."
	case rayv1.JobStatusStopped:
		return "Job was stopped."
	default:
		return "Job entrypoint command failed with exit code 1 (annotation " + OutcomeAnnotation + ")."
	}
}
