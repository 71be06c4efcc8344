package state

import (
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/fault"
)

// explainRequest says that nodes are asked for and how far the autoscaler is, or what keeps the
// dispatcher from creating the request, which it goes on trying.
func (l *lifecycle) explainRequest(e *entry, r *event.ProvisionStatus, now time.Time) {
	p := e.Provisioning
	why := admission.AskedReason(p.Cluster, p.Check, p.Pods, p.Placeholders(), p.TriedClusters)
	begun := why.Message + progressPrefix
	switch {
	case !r.Created && r.Message != "":
		why.Message = fmt.Sprintf("%s cannot be created: %s", requestCalled(p), sanitize(r.Message))
	case !p.Placeholders():
		why.Message += requestProgress(r)
	}
	switch old := e.Reason; {
	case old != nil && (old.Kind != why.Kind || old.Message == why.Message): // a held queue says more
	case old != nil && strings.HasPrefix(old.Message, begun) && strings.HasPrefix(why.Message, begun): // an estimate may change often
		e.Reason = why
		l.staleReasons[e.ID] = e
	default:
		e.Reason = why
		l.emitChanged(e, now)
	}
}

// progressPrefix begins what a reason has of an autoscaler's progress, and progressLimit bounds
// that, in bytes.
const (
	progressPrefix = "; the autoscaler "
	progressLimit  = 300
)

// requestProgress is what an autoscaler reports of a request before it is provisioned; empty for
// nothing.
func requestProgress(r *event.ProvisionStatus) string {
	said := fault.ClipTo(strings.Join(strings.Fields(sanitize(r.Message)), " "), progressLimit)
	progress := ""
	switch {
	case r.State == event.RequestAccepted:
		progress = progressPrefix + "has accepted the request"
	case said != "":
		progress = progressPrefix + "has not accepted the request"
	}
	if said != "" {
		progress += ": " + said
	}
	return progress
}
