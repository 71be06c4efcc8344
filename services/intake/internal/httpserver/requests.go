package httpserver

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/spec/workload"
)

// asker is for whom something is asked of a workload, and why.
type asker struct {
	by, why string
	// submitter is empty for operators.
	submitter string
}

// change publishes what a caller asks of a workload that it may see. asked returns that, nil
// when it is so already, or the error of a workload of which it cannot be asked now.
func (s *Server) change(w http.ResponseWriter, r *http.Request, caller string, asked func(record workload.Record, by asker) (event.Payload, error)) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	record, err := s.record(ctx, caller, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	by := asker{by: caller, submitter: caller}
	if s.isOperator(caller) {
		by.submitter = ""
	}
	if by.why, err = whyOf(r); err != nil {
		return err
	}
	message, err := asked(record, by)
	if err != nil {
		return err
	}
	if message != nil {
		if err := s.publishOf(ctx, record, message); err != nil {
			return err
		}
	}
	write(w, http.StatusAccepted, httpapi.Changing{Workload: record.ID, Unchanged: message == nil})
	return nil
}

// holdWorkload keeps a workload that waits from admission.
func (s *Server) holdWorkload(w http.ResponseWriter, r *http.Request, caller string) error {
	return s.change(w, r, caller, func(record workload.Record, by asker) (event.Payload, error) {
		if record.Phase != workload.Queued && record.Phase != workload.Evicting {
			return nil, fail(http.StatusConflict, "workload %s is %s: only a waiting workload can be held; requeue returns an admitted one to its queue", record.ID, record.Phase)
		}
		return &event.WorkloadHold{Workload: record.ID, By: by.by, Why: by.why, Submitter: by.submitter}, nil
	})
}

// resumeWorkload lets a held workload be admitted again.
func (s *Server) resumeWorkload(w http.ResponseWriter, r *http.Request, caller string) error {
	return s.change(w, r, caller, func(record workload.Record, by asker) (event.Payload, error) {
		switch {
		case record.Hold == nil:
			return nil, fail(http.StatusConflict, "workload %s is not held", record.ID)
		case by.submitter != "" && !record.Hold.Own:
			return nil, fail(http.StatusConflict, "workload %s is %s; only an operator can resume it", record.ID, record.Hold.Message())
		}
		return &event.WorkloadHold{Workload: record.ID, Resume: true, By: by.by, Why: by.why, Submitter: by.submitter}, nil
	})
}

// requeue has a workload that was admitted wait again.
func (s *Server) requeue(w http.ResponseWriter, r *http.Request, caller string) error {
	return s.change(w, r, caller, func(record workload.Record, by asker) (event.Payload, error) {
		switch record.Phase {
		case workload.Admitted, workload.Dispatched, workload.Running:
			return &event.WorkloadRequeue{Workload: record.ID, Attempt: record.Attempt, By: by.by, Why: by.why, Submitter: by.submitter}, nil
		}
		return nil, fail(http.StatusConflict, "workload %s is %s: only one that was admitted can be requeued", record.ID, record.Phase)
	})
}

// checkpoint takes in that a workload has saved its work.
func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request, caller string) error {
	now := time.Now().UTC()
	at := now
	if text := r.URL.Query().Get("at"); text != "" {
		var err error
		if at, err = time.Parse(time.RFC3339, text); err != nil {
			return fail(http.StatusBadRequest, "at %.80q: want a time such as 2026-01-02T15:04:05Z", text)
		}
	}
	return s.change(w, r, caller, func(record workload.Record, by asker) (event.Payload, error) {
		return savedAt(record, by, at, now)
	})
}

// savedAt is the report of a checkpoint; nil for one that is too near to the last. A time to come
// counts as the present here too, or each request with one would be stored.
func savedAt(record workload.Record, by asker, at, now time.Time) (event.Payload, error) {
	if at.After(now) {
		at = now
	}
	switch record.Phase {
	case workload.Running, workload.Evicting, workload.Cancelling:
	default:
		return nil, fail(http.StatusConflict, "workload %s is %s: only one that runs has work to save", record.ID, record.Phase)
	}
	last := record.Saved().Last(record.Attempt)
	switch {
	case !last.IsZero() && at.Sub(last) < workload.SavedApart:
		return nil, nil
	case !at.After(record.Times.Admitted):
		return nil, fail(http.StatusConflict, "workload %s was admitted at %s, and %s is not after that", record.ID,
			record.Times.Admitted.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
	}
	return &event.WorkloadCheckpoint{Workload: record.ID, Attempt: record.Attempt, At: at, By: by.by, Submitter: by.submitter}, nil
}

// setPriority sets the priority of a workload.
func (s *Server) setPriority(w http.ResponseWriter, r *http.Request, caller string) error {
	text := r.URL.Query().Get("value")
	value, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return fail(http.StatusBadRequest, "value %.80q: want a whole number from %d to %d", text, math.MinInt32, math.MaxInt32)
	}
	return s.change(w, r, caller, func(record workload.Record, by asker) (event.Payload, error) {
		switch {
		case record.Priority == int32(value):
			return nil, nil
		case record.Phase.Final():
			return nil, fail(http.StatusConflict, "workload %s has ended: it is %s", record.ID, record.Phase)
		}
		return &event.WorkloadPriority{Workload: record.ID, Priority: int32(value), By: by.by, Why: by.why}, nil
	})
}
