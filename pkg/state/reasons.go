package state

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// setWaitReason notes why a workload waits. A reason that differs in amounts only is
// stored with the next Tick, so that one event does not rewrite all who wait.
func (l *lifecycle) setWaitReason(e *entry, reason workload.Reason, now time.Time) {
	old := e.Reason
	if a := l.quarantined[e.ID]; a != nil && reason.Kind == workload.ReasonBackoff && a.Until.After(now) {
		return // the one that is there has more
	}
	if hold := l.quotaHold(e); hold != nil && reason.Kind == workload.ReasonBackoff && hold.Until.After(now) {
		reason = *hold.Reason()
	}
	if old != nil && (old.Message == reason.Message || old.Kind == workload.ReasonBackoff && reason.Kind == workload.ReasonBackoff) {
		return // the one that is there names the cause, too
	}
	e.Reason = &reason
	if old != nil && sameCause(*old, reason) {
		l.staleReasons[e.ID] = e
		return
	}
	l.emitChanged(e, now)
}

func sameCause(a, b workload.Reason) bool {
	if a.Kind != b.Kind || (a.Shortage == nil) != (b.Shortage == nil) {
		return false
	}
	if a.Quota != nil && b.Quota != nil {
		return a.Quota.Flavor == b.Quota.Flavor && a.Quota.Resource == b.Quota.Resource
	}
	return a.Shortage == nil || a.Shortage.PodSet == b.Shortage.PodSet && a.Shortage.Resource == b.Shortage.Resource
}

// replaceable has, for each kind of reason of a running gang, the kinds in whose place it
// may be set; what is not listed has more. A gang without a reason takes any.
var replaceable = map[workload.ReasonKind][]workload.ReasonKind{
	workload.ReasonNodeNotReady: {
		workload.ReasonNodeNotReady, workload.ReasonPodLost, workload.ReasonGrowing, workload.ReasonBesidePlan, workload.ReasonHeadReplaced,
		workload.ReasonClusterSilent, workload.ReasonPermissionEnded,
	},
	// What was observed ends a silence, so it takes the place of that.
	workload.ReasonPodLost:      {workload.ReasonHeadReplaced, workload.ReasonClusterSilent, workload.ReasonPermissionEnded},
	workload.ReasonGrowing:      {workload.ReasonGrowing, workload.ReasonHeadReplaced},
	workload.ReasonHeadReplaced: {workload.ReasonHeadReplaced, workload.ReasonClusterSilent, workload.ReasonPermissionEnded},
	workload.ReasonBesidePlan:   {workload.ReasonBesidePlan},
	// What was observed is old when these are set: see mayStrand.
	workload.ReasonClusterSilent:   nil,
	workload.ReasonPermissionEnded: nil,
}

// mayExplain reports whether a reason of the given kind may be set on a running gang, in
// place of the reason that it has.
func mayExplain(e *entry, kind workload.ReasonKind) bool {
	return e.Reason == nil || slices.Contains(replaceable[kind], e.Reason.Kind)
}

// mayStrand reports whether a reason of the given kind, that its cluster is out of reach, may take
// the place of that of a gang. A loss that is being mended says more, until the gang is stopped.
func mayStrand(e *entry, kind workload.ReasonKind) bool {
	if e.Reason == nil {
		return true
	}
	switch e.Reason.Kind {
	case workload.ReasonStarting, workload.ReasonGrowing, workload.ReasonHeadReplaced, workload.ReasonBesidePlan,
		workload.ReasonClusterSilent, workload.ReasonPermissionEnded:
		return true
	case workload.ReasonPodLost, workload.ReasonNodeNotReady:
		return kind == workload.ReasonPermissionEnded
	}
	return false
}

// isStranded reports whether the reason of a gang is that its cluster is out of reach.
func isStranded(e *entry) bool {
	return e.Reason != nil && slices.Contains(strandedKinds, e.Reason.Kind)
}

// strandedKinds are the kinds of reasons of gangs in clusters that are out of reach.
var strandedKinds = []workload.ReasonKind{workload.ReasonClusterSilent, workload.ReasonPermissionEnded}

// setStartingReason says what keeps a started workload from running, or that nothing
// does any more.
func (l *lifecycle) setStartingReason(e *entry, message string, now time.Time) {
	switch {
	case message == "" && e.Reason != nil && e.Reason.Kind == workload.ReasonStarting:
		e.Reason = l.growthReason(e)
	case message != "" && (e.Reason == nil || e.Reason.Message != message):
		e.Reason = &workload.Reason{Kind: workload.ReasonStarting, Message: message}
	default:
		return
	}
	l.emitChanged(e, now)
}

// growthReason is why a gang that grows waits, nil when it does not.
func (l *lifecycle) growthReason(e *entry) *workload.Reason {
	if e.growth == nil {
		return nil
	}
	if why := l.admission.Reason(e.ID); why != nil {
		reason := e.growth.reason(*why)
		return &reason
	}
	return nil
}

// explainFixed records that a gang cannot get other places.
func (l *lifecycle) explainFixed(e *entry, why string, now time.Time) {
	reason := l.quarantined[e.ID].Reason()
	reason.Message = why + "; the gang keeps its places: " + reason.Message
	if e.Reason == nil || e.Reason.Message != reason.Message {
		e.Reason = reason
		l.emitChanged(e, now)
	}
}

// slowPrefix begins the reasons of explainSlowStart.
const slowPrefix = "starting:"

// messageLimit bounds what others report, in bytes.
const messageLimit = 2000

// sanitize makes text of others storable: a RayJob's message has the last lines of
// its log, whatever these are. Postgres stores no NUL.
func sanitize(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "?")
	if len(text) > messageLimit {
		text = strings.ToValidUTF8(text[:messageLimit], "") + " ..."
	}
	return text
}

// Reason is the reason of the workload.
func (q *Quarantined) Reason() *workload.Reason {
	message := "the database refuses to store the decision: " + sanitize(q.Why)
	if !q.Until.IsZero() {
		message += fmt.Sprintf("; the workload is tried again at %s", q.Until.UTC().Format(time.RFC3339))
	}
	return &workload.Reason{Kind: workload.ReasonNotStorable, Message: message}
}

func (g *growth) reason(why workload.Reason) workload.Reason {
	var asked []string
	for _, set := range g.sets {
		asked = append(asked, fmt.Sprintf("%d more of %q", set.Count, set.Name))
	}
	why.Kind = workload.ReasonGrowing
	why.Message = fmt.Sprintf("running; %s wait at their scheduling gates: %s", strings.Join(asked, ", "), why.Message)
	return why
}
