package workload

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/resource"
)

func ptr[T any](v T) *T { return &v }

// Whatever a workload asks for beyond its queue is refused, and the refusal names the
// value and the maximum.
func TestAWorkloadMayNotAskForMoreThanItsQueueAllows(t *testing.T) {
	t.Parallel()
	hours := func(n int) Duration { return Duration(time.Duration(n) * time.Hour) }
	strict := Rules{
		Life: Life{MaxRunTime: hours(24), IdleTime: hours(1), CheckpointInterval: 3 * 3600},
		Limits: Limits{
			CheckpointGrace: Duration(time.Minute), Retries: ptr(5), Priority: ptr(int32(10)), Pods: 4,
			Resources: Resources{resource.Name("nvidia.com/gpu"): "8"},
		},
	}
	pods := func(n int, gpus int64) []PodSet {
		return []PodSet{{Name: "workers", Count: n, Template: Template{Requests: resource.List{"nvidia.com/gpu": gpus}}}}
	}
	for name, c := range map[string]struct {
		rules Rules
		w     Workload
		class string
		want  string // empty: it is taken
	}{
		"nothing":                  {Rules{}, Workload{}, "", ""},
		"ten years of grace":       {Rules{}, Workload{Life: Life{CheckpointGrace: hours(87600)}}, "", `checkpoint grace: is 87600h0m0s, but queue "q" allows 30m0s at most`},
		"grace within the default": {Rules{}, Workload{Life: Life{CheckpointGrace: Duration(DefaultMostGrace)}}, "", ""},
		"the queue's own grace":    {Rules{Life: Life{CheckpointGrace: hours(2)}}, Workload{Life: Life{CheckpointGrace: hours(2)}}, "", ""},
		"grace":                    {strict, Workload{Life: Life{CheckpointGrace: Duration(61 * time.Second)}}, "", "1m1s, but"},
		"ready deadline":           {Rules{}, Workload{Life: Life{ReadyDeadline: hours(24)}}, "", "ready deadline: is 24h"},
		"run time":                 {strict, Workload{Life: Life{MaxRunTime: hours(25)}}, "", "allows 24h0m0s at most"},
		"less run time":            {strict, Workload{Life: Life{MaxRunTime: hours(1)}}, "", ""},
		"no bound of run time":     {Rules{}, Workload{Life: Life{MaxRunTime: hours(1000)}}, "", ""},
		"idle time":                {strict, Workload{Life: Life{IdleTime: hours(2)}}, "", "idle time: is 2h"},
		"checkpoint interval":      {strict, Workload{Life: Life{CheckpointInterval: SecondsOf(hours(4))}}, "", `checkpoint interval: is 4h0m0s, but queue "q" allows 3h0m0s at most`},
		"less of it":               {strict, Workload{Life: Life{CheckpointInterval: SecondsOf(hours(3))}}, "", ""},
		"no bound of it":           {Rules{}, Workload{Life: Life{CheckpointInterval: SecondsOf(hours(1000))}}, "", ""},
		"retries":                  {strict, Workload{Life: Life{Tolerance: &Tolerance{Retries: ptr(6)}}}, "", "retries: are 6, but"},
		"endless retries":          {Rules{}, Workload{Life: Life{Tolerance: &Tolerance{Retries: ptr(1 << 30)}}}, "", "allows 1000 at most"},
		"loss deadline":            {Rules{}, Workload{Life: Life{Tolerance: &Tolerance{LossDeadline: hours(24)}}}, "", "to be whole again after a loss: is 24h"},
		"force":                    {Rules{}, Workload{Life: Life{Tolerance: &Tolerance{ForceAfter: hours(24)}}}, "", "deletion by force: is 24h"},
		"pause":                    {Rules{}, Workload{Life: Life{Tolerance: &Tolerance{Pause: hours(25)}}}, "", "pause between retries: is 25h"},
		"success TTL":              {Rules{Limits: Limits{SuccessTTL: hours(1)}}, Workload{Life: Life{Tolerance: &Tolerance{SuccessTTL: hours(2)}}}, "", "after its success: is 2h"},
		"priority":                 {strict, Workload{Priority: 11}, "", `priority: is 11, but queue "q" allows 10 at most`},
		"highest number":           {Rules{}, Workload{Priority: 1<<31 - 1}, "", "allows 1000 at most"},
		"class of any value":       {Rules{}, Workload{Priority: 1 << 30}, "urgent", ""},
		"class above the number":   {strict, Workload{Priority: 100}, "urgent", `is 100 of class "urgent"`},
		"class of the list":        {Rules{Limits: Limits{Priority: ptr(int32(1)), PriorityClasses: []string{"a", "b"}}}, Workload{Priority: 100}, "b", ""},
		"class beside the list":    {Rules{Limits: Limits{PriorityClasses: []string{"a", "b"}}}, Workload{}, "c", `priority class: is "c", but queue "q" allows only: a, b`},
		"pods":                     {strict, Workload{PodSets: pods(5, 1)}, "", "pods: are 5, but"},
		"GPUs":                     {strict, Workload{PodSets: pods(4, 3)}, "", `nvidia.com/gpu: is 12 in all, but queue "q" allows a workload 8 at most`},
		"all of it":                {strict, Workload{PodSets: pods(4, 2), Priority: 10}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := c.rules.Validate(); err != nil {
				t.Fatal(err)
			}
			c.w.Queue = "q"
			err := c.rules.Exceeded(&c.w, c.class)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// What was taken in before a limit was set keeps to it, too.
func TestLimitsBindWhatWasSubmittedBefore(t *testing.T) {
	t.Parallel()
	year := Duration(365 * 24 * time.Hour)
	asked := Life{
		CheckpointGrace: year, ReadyDeadline: year, MaxRunTime: year, IdleTime: year, CheckpointInterval: SecondsOf(year), RunTime: Duration(time.Minute),
		Tolerance: &Tolerance{Retries: ptr(1 << 20), Pause: year, LossDeadline: year, ForceAfter: year},
	}
	queue := Rules{Life: Life{MaxRunTime: Duration(time.Hour), IdleTime: Duration(2 * time.Minute), CheckpointInterval: 180}}
	got := queue.For(asked)
	for what, c := range map[string]struct{ got, want time.Duration }{
		"grace":          {time.Duration(got.CheckpointGrace), DefaultMostGrace},
		"ready deadline": {time.Duration(got.ReadyDeadline), DefaultMostReadyDeadline},
		"loss deadline":  {got.HealWithin(), DefaultMostReadyDeadline},
		"force":          {time.Duration(got.ForceAfter), DefaultMostForceAfter},
		"pause":          {got.Backoff(1), DefaultMostPause},
		"run time":       {time.Duration(got.MaxRunTime), time.Hour},
		"idle time":      {time.Duration(got.IdleTime), 2 * time.Minute},
		"interval":       {time.Duration(got.CheckpointInterval.Duration()), 3 * time.Minute},
	} {
		t.Run(what, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("%s: %s, want %s", what, c.got, c.want)
			}
		})
	}
	if *got.Requeues != DefaultMostRetries {
		t.Errorf("%d retries, want %d", *got.Requeues, DefaultMostRetries)
	}
	if asked.Tolerance.LossDeadline != year {
		t.Error("what was asked for has been changed")
	}
	queue.Limits = Limits{EndAtRunTime: true}
	if got := queue.For(asked).MaxRunTime; got != Duration(time.Minute) {
		t.Errorf("it may run for %s, want the minute that it declared", time.Duration(got))
	}
	if got := (Rules{Limits: Limits{CheckpointInterval: 3600}}).For(Life{}).CheckpointInterval; got != 3600 {
		t.Errorf("who declares nothing is taken to save its work every %d s, want the limit of an hour", got)
	}
	if got := (Rules{Limits: Limits{MaxRunTime: Duration(time.Hour)}}).For(Life{}).MaxRunTime; got != Duration(time.Hour) {
		t.Errorf("who asks for nothing may run for %s, want the limit of an hour", time.Duration(got))
	}
}
