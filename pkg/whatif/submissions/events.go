package submissions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/scenario"
	"muster.dev/muster/pkg/whatif/simulation"
)

// submission is a line of Muster's own format.
type submission struct {
	// At is when it is submitted, since the beginning.
	At workload.Duration `json:"at"`
	// Runs is how long it really runs.
	Runs workload.Duration `json:"runs"`
	// RunTime is how long it is declared to run; MaxRunTime ends it.
	RunTime    workload.Duration `json:"runTime"`
	MaxRunTime workload.Duration `json:"maxRunTime"`

	Name          string            `json:"name"`
	User          string            `json:"user"`
	Queue         string            `json:"queue"`
	Namespace     string            `json:"namespace"`
	Priority      int32             `json:"priority"`
	PriorityClass string            `json:"priorityClass"`
	Pods          []scenario.PodSet `json:"pods"`
}

// beginning is the time to which the times of a file are added.
func beginning() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func readEvents(r io.Reader, o Options) ([]simulation.Job, error) {
	var jobs []simulation.Job
	err := lines(r, func(number int, line string) error {
		decoder := json.NewDecoder(bytes.NewReader([]byte(line)))
		decoder.DisallowUnknownFields()
		var s submission
		if err := decoder.Decode(&s); err != nil {
			return unreadable(err)
		}
		if decoder.More() {
			return errors.New("has more than one object; want one submission on a line")
		}
		job, err := s.job(number, o)
		if err == nil {
			jobs = append(jobs, job)
		}
		return err
	})
	bySubmission(jobs)
	return jobs, err
}

func unreadable(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fault.At(wrong.Field, "is a %s; want a %s", wrong.Value, wrong.Type)
	}
	return fmt.Errorf("%w; want a JSON object with at, runs, runTime, maxRunTime, name, user, queue, namespace, priority, priorityClass, pods", err)
}

func (s *submission) job(number int, o Options) (simulation.Job, error) {
	var faults fault.List
	if s.Runs <= 0 {
		faults.Add("runs", "is missing; want how long it runs, such as 90m")
	}
	if s.Queue == "" {
		s.Queue = o.Queue
	}
	if s.Queue == "" {
		faults.Add("queue", "is missing; want the name of a queue, here or with --queue")
	}
	if len(s.Pods) == 0 {
		faults.Add("pods", `is missing; want a list, such as [{"name": "workers", "count": 8, "requests": {"nvidia.com/gpu": 1}}]`)
	}
	if s.Priority != 0 && s.PriorityClass != "" {
		faults.Add("priorityClass", "there is priority, too; want one of them")
	}
	id := event.WorkloadID("submissions", fmt.Sprint(number))
	w := workload.Workload{
		ID: id, Digest: string(id), Kind: "Job", Name: nameOf(s.Name, number), Queue: s.Queue, Namespace: s.Namespace, Priority: s.Priority,
		Submitter: userOf(s.User), Life: workload.Life{RunTime: s.RunTime, MaxRunTime: s.MaxRunTime},
	}
	for i := range s.Pods {
		set, err := s.Pods[i].Spec(fault.Index("pods", i))
		faults.Under("", err)
		w.PodSets = append(w.PodSets, set)
	}
	return simulation.Job{
		Workload: w, PriorityClass: s.PriorityClass, Label: fmt.Sprintf("line %d (%s)", number, w.Name),
		Submitted: beginning().Add(time.Duration(s.At)), Run: time.Duration(s.Runs),
	}, faults.Err()
}

// nameOf makes the name of a job unique.
func nameOf(name string, number int) string {
	if name == "" {
		name = "job"
	}
	return fmt.Sprintf("%s-%d", name, number)
}

func userOf(user string) string {
	if user == "" {
		return "user"
	}
	return user
}
