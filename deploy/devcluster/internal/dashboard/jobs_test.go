package dashboard

import (
	"strings"
	"testing"
	"time"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestPlanOf(t *testing.T) {
	tests := map[string]struct {
		reason      string
		annotations map[string]string
		failed      *int32
		want        plan
		fault       string
	}{
		"default": {
			reason: "a RayJob that says nothing succeeds after a second",
			want:   plan{rayv1.JobStatusSucceeded, time.Second},
		},
		"both": {
			reason:      "annotations set outcome and duration",
			annotations: map[string]string{OutcomeAnnotation: "Failed", DurationAnnotation: "1m30s"},
			want:        plan{rayv1.JobStatusFailed, 90 * time.Second},
		},
		"first attempt": {
			reason:      "a list gives the outcome of each attempt",
			annotations: map[string]string{OutcomeAnnotation: "failed, stopped"},
			want:        plan{rayv1.JobStatusFailed, time.Second},
		},
		"later attempts": {
			reason:      "the last of the list is that of all further attempts",
			annotations: map[string]string{OutcomeAnnotation: "failed, stopped"},
			failed:      ptr.To[int32](5),
			want:        plan{rayv1.JobStatusStopped, time.Second},
		},
		"bad outcome":       {annotations: map[string]string{OutcomeAnnotation: "maybe"}, fault: `job-outcome="maybe"`},
		"bad duration":      {annotations: map[string]string{DurationAnnotation: "long"}, fault: `job-duration="long"`},
		"negative duration": {annotations: map[string]string{DurationAnnotation: "-1s"}, fault: `job-duration="-1s"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := &rayv1.RayJob{}
			job.Annotations, job.Status.Failed = tc.annotations, tc.failed
			got, err := planOf(job)
			if tc.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fault) {
					t.Errorf("planOf: %v, want a fault with %q", err, tc.fault)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("%s: planOf = %v, %v; want %v", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	submitted := time.Unix(1000, 0)
	tests := map[string]struct {
		after   time.Duration
		stopped time.Duration // stopped is the time of a stop after the submission, 0 for none.
		want    rayv1.JobStatus
		ended   bool
	}{
		"at first":         {after: 0, want: rayv1.JobStatusPending},
		"soon":             {after: pendingTime, want: rayv1.JobStatusRunning},
		"just before":      {after: 10*time.Second - 1, want: rayv1.JobStatusRunning},
		"at the end":       {after: 10 * time.Second, want: rayv1.JobStatusFailed, ended: true},
		"stopped":          {after: 5 * time.Second, stopped: 4 * time.Second, want: rayv1.JobStatusStopped, ended: true},
		"stopped too late": {after: 12 * time.Second, stopped: 11 * time.Second, want: rayv1.JobStatusFailed, ended: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			j := &job{submitted: submitted, plan: plan{rayv1.JobStatusFailed, 10 * time.Second}}
			if tc.stopped > 0 {
				j.stopped = submitted.Add(tc.stopped)
			}
			p := j.progress(submitted.Add(tc.after))
			if p.status != tc.want || p.ended.IsZero() == tc.ended {
				t.Errorf("after %s: %s, ended at %v; want %s, ended %v", tc.after, p.status, p.ended, tc.want, tc.ended)
			}
			if !tc.ended && p.remaining != 10*time.Second-tc.after {
				t.Errorf("after %s: %s remain", tc.after, p.remaining)
			}
		})
	}
}

func TestSubmission(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "head", Env: []corev1.EnvVar{{Name: "RAY_ADDRESS", Value: "x"}}},
		{Name: "submitter", Env: []corev1.EnvVar{{Name: "RAY_JOB_SUBMISSION_ID", Value: "job-1"}}},
	}}}
	if container, id := submission(pod); container != "submitter" || id != "job-1" {
		t.Errorf("submission = %q, %q; want submitter, job-1", container, id)
	}
	pod.Spec.Containers = pod.Spec.Containers[:1]
	if container, id := submission(pod); container != "" || id != "" {
		t.Errorf("submission of a pod that submits nothing = %q, %q", container, id)
	}
}
