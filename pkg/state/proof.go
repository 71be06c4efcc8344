package state

import (
	"encoding/json"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
)

// Bounds of the certificates in events. To make one costs time that is linear in the
// nodes, which a leader with thousands of submissions in a second does not have.
const (
	proofBytes = 8 << 10     // of JSON
	proofNodes = 2000        // of all clusters
	proofEvery = time.Second // between two of them
)

// provable are the reasons for which a certificate is a proof of the same.
var provable = []workload.ReasonKind{workload.ReasonFit, workload.ReasonQuota, workload.ReasonTopology, workload.ReasonNeverFits}

// proof returns a certificate that a waiting workload cannot start now, for the event of
// its reason; nil where there is none within the bounds. `muster explain --certificate`
// has no such bounds.
func (l *lifecycle) proof(e *entry, now time.Time) json.RawMessage {
	if l.noCertificates || e.Phase != workload.Queued || e.Reason == nil || !slices.Contains(provable, e.Reason.Kind) {
		return nil
	}
	if len(l.nodes) > proofNodes || !l.provedAt.IsZero() && now.Sub(l.provedAt) < proofEvery && !now.Before(l.provedAt) {
		return nil
	}
	l.provedAt = now
	document, _ := admission.CertifyDecided(l.admission, e.ID)
	if document == nil {
		return nil
	}
	encoded, err := json.Marshal(document)
	if err != nil || len(encoded) > proofBytes {
		return nil
	}
	return encoded
}
