package store

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// recordColumns are the columns of workloads w that a reader reads, in the order of
// its targets; places and pod sets are read apart.
const recordColumns = `w.submission, w.id, w.queue, w.namespace, w.kind, w.name, w.priority, w.digest, w.shape,
	w.phase, w.attempt, coalesce(w.cluster, ''), w.holding, w.cancel_requested, w.reason,
	w.submitted_at, w.admitted_at, w.dispatched_at, w.running_at, w.finished_at,
	w.life, w.requeues, w.not_before, w.evict_at, w.heard_again, w.flavors, w.provisioning, w.hold, w.asked, w.saved, w.submitter`

// reader turns rows into workloads, of which there may be a million. What many rows
// share is read once and then shared: pod sets, reasons, and the texts that repeat.
type reader struct {
	podSets map[[16]byte][]workload.PodSet
	reasons map[string]*workload.Reason
	texts   map[string]string
	line    line
	targets []any // in line
	own     []byte
}

// line is a row as it is read.
type line struct {
	order                                                                              int64
	id, shape                                                                          pgtype.UUID
	queue, namespace, kind, name, digest, phase, cluster, submitter                    raw
	reason, life, flavors, provisioning, hold, asked, saved                            raw // nil for NULL
	priority                                                                           int32
	attempt                                                                            int
	requeues                                                                           uint16
	holding, cancelRequested                                                           bool
	submitted, admitted, dispatched, running, finished, notBefore, evictAt, heardAgain pgtype.Timestamptz
}

// raw is a value as it came, which is only there until the next row is.
type raw []byte

// ScanBytes implements pgtype.BytesScanner.
func (r *raw) ScanBytes(value []byte) error {
	*r = value
	return nil
}

func newReader() *reader {
	r := &reader{podSets: map[[16]byte][]workload.PodSet{}, reasons: map[string]*workload.Reason{}, texts: map[string]string{}}
	l := &r.line
	r.targets = []any{
		&l.order, &l.id, &l.queue, &l.namespace, &l.kind, &l.name, &l.priority, &l.digest, &l.shape,
		&l.phase, &l.attempt, &l.cluster, &l.holding, &l.cancelRequested, &l.reason,
		&l.submitted, &l.admitted, &l.dispatched, &l.running, &l.finished,
		&l.life, &l.requeues, &l.notBefore, &l.evictAt, &l.heardAgain, &l.flavors, &l.provisioning, &l.hold, &l.asked, &l.saved, &l.submitter,
	}
	return r
}

// read reads one row of recordColumns.
func (r *reader) read(rows pgx.Rows) (w state.StoredWorkload, err error) {
	l := &r.line
	if err := rows.Scan(r.targets...); err != nil {
		return w, err
	}
	w.ID, w.Name, w.Digest = r.owned(l.id.Bytes, l.name, l.digest)
	podSets, known := r.podSets[l.shape.Bytes]
	if !known {
		return w, fmt.Errorf("workload %s is of shape %x, which is not stored", w.ID, l.shape.Bytes)
	}
	w.PodSets, w.Order, w.Priority = podSets, l.order, l.priority
	w.Queue, w.Namespace, w.Kind, w.Submitter = r.shared(l.queue), r.shared(l.namespace), r.shared(l.kind), r.shared(l.submitter)
	w.Phase, w.Cluster = workload.Phase(r.shared(l.phase)), r.shared(l.cluster)
	w.Attempt, w.Requeues, w.Holding, w.CancelRequested = l.attempt, l.requeues, l.holding, l.cancelRequested
	w.Times = workload.Times{
		Submitted: l.submitted.Time, Admitted: l.admitted.Time, Dispatched: l.dispatched.Time, Running: l.running.Time, Finished: l.finished.Time,
	}
	w.NotBefore, w.EvictAt, w.HeardAgain = l.notBefore.Time, l.evictAt.Time, l.heardAgain.Time
	if w.Reason, err = r.reason(l.reason); err != nil {
		return w, err
	}
	if l.flavors != nil {
		if err := json.Unmarshal(l.flavors, &w.Flavors); err != nil {
			return w, fmt.Errorf("read flavors %s of workload %s: %w", l.flavors, w.ID, err)
		}
	}
	if l.provisioning != nil {
		if err := json.Unmarshal(l.provisioning, &w.Provisioning); err != nil {
			return w, fmt.Errorf("read provisioning %s of workload %s: %w", l.provisioning, w.ID, err)
		}
	}
	if l.hold != nil {
		if err := json.Unmarshal(l.hold, &w.Hold); err != nil {
			return w, fmt.Errorf("read hold %s of workload %s: %w", l.hold, w.ID, err)
		}
	}
	if l.asked != nil {
		if err := json.Unmarshal(l.asked, &w.Asked); err != nil {
			return w, fmt.Errorf("read requests %s of workload %s: %w", l.asked, w.ID, err)
		}
	}
	if l.saved != nil {
		saved := &workload.Saved{}
		if err := json.Unmarshal(l.saved, saved); err != nil {
			return w, fmt.Errorf("read checkpoints %s of workload %s: %w", l.saved, w.ID, err)
		}
		w.SetSaved(saved)
	}
	if string(l.life) != "{}" {
		if err := json.Unmarshal(l.life, &w.Life); err != nil {
			return w, fmt.Errorf("read life %s of workload %s: %w", l.life, w.ID, err)
		}
	}
	return w, nil
}

// owned returns the texts that are of one workload only. They are parts of one
// string: one object for the collector of garbage, not three.
func (r *reader) owned(id [16]byte, name, digest []byte) (workload.ID, string, string) {
	r.own = appendUUID(r.own[:0], id)
	ends := len(r.own)
	r.own = append(append(r.own, name...), digest...)
	all := string(r.own)
	return workload.ID(all[:ends]), all[ends : ends+len(name)], all[ends+len(name):]
}

// appendUUID appends the text of a UUID.
func appendUUID(text []byte, id [16]byte) []byte {
	text = hex.AppendEncode(text, id[:4])
	for _, part := range [][]byte{id[4:6], id[6:8], id[8:10], id[10:]} {
		text = hex.AppendEncode(append(text, '-'), part)
	}
	return text
}

// shared returns a text that many workloads have.
func (r *reader) shared(text []byte) string {
	if known, ok := r.texts[string(text)]; ok {
		return known
	}
	fresh := string(text)
	r.texts[fresh] = fresh
	return fresh
}

// sharedReasons bounds the memory for reasons that differ.
const sharedReasons = 10_000

func (r *reader) reason(encoded []byte) (*workload.Reason, error) {
	if encoded == nil {
		return nil, nil
	}
	if known, ok := r.reasons[string(encoded)]; ok {
		return known, nil
	}
	reason := &workload.Reason{}
	if err := json.Unmarshal(encoded, reason); err != nil {
		return nil, fmt.Errorf("read reason %s: %w", encoded, err)
	}
	if len(r.reasons) < sharedReasons {
		r.reasons[string(encoded)] = reason
	}
	return reason, nil
}
