package event

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"muster.dev/muster/pkg/spec/resource"
)

// Bounds of what a cluster reports. A holder of the key of a cluster may publish anything
// about it, and the memory and the database of all clusters take it in.
//
// They bind only what tenants of an honest cluster cannot write: otherwise a tenant's
// pod or object could silence the watcher about a node, or about another gang.
const (
	// AheadMost is how far the session of a cluster's service may lie ahead of the
	// reader's clock: a later one would silence the services that come after it.
	AheadMost = 24 * time.Hour

	mostAllocatable = 1 << 49 // of a resource: 512 TiB; ten thousand nodes of it can be added
	mostAttempt     = 1 << 30
	mostOf          = 1000 // labels of a node, and resources
	mostTaints      = 200
	mostName        = 512 // bytes of a name, label or id
)

// CheckObservation returns an error for an observation or status that its cluster may not
// publish, or that cannot be true. The subject names the cluster: NATS lets the keys of a
// cluster publish to subjects of that cluster only, and checks nothing else.
func CheckObservation(subject string, payload Payload, now time.Time) error {
	var want string
	switch p := payload.(type) {
	case *NodeObserved:
		want = NodeSubject(p.Node.Cluster, p.Node.Name)
	case *NodeRemoved:
		want = NodeSubject(p.Cluster, p.Node)
	case *NamespaceObserved:
		want = NamespaceSubject(p.Cluster, p.Namespace)
	case *CapacitySynced:
		want = SyncedSubject(p.Cluster)
	case *GangObserved:
		want = GangSubject(p.Cluster, p.Workload)
	case *GangStatus:
		want = StatusSubject(p.Cluster, p.Workload)
	case *PermissionAsked:
		want = PermissionAskedSubject(p.Cluster)
	}
	if subject != want {
		return fmt.Errorf("%s event about %.200q is on subject %.200q; want %.200q", payload.EventType(), payload.CloudEventSubject(), subject, want)
	}
	return CheckReported(payload, now)
}

// CheckReported returns an error, which wraps ErrMalformed, for what no honest watcher,
// dispatcher or intake reports: amounts that cannot be counted, text that cannot be stored, more
// than a node or gang has, a session from the far future, a workload that no manifest becomes.
// Other payloads pass.
func CheckReported(payload Payload, now time.Time) error {
	c := &check{}
	switch p := payload.(type) {
	case *NodeObserved:
		c.version(p.Version, now)
		c.node(p)
	case *NodeRemoved:
		c.version(p.Version, now)
		c.text("node", p.Node)
	case *NamespaceObserved:
		c.version(p.Version, now)
		c.namespace(p)
	case *CapacitySynced:
		c.version(p.Version, now)
		c.count("kinds", len(p.Kinds), MostKinds)
		for _, kind := range p.Kinds {
			c.text("kind", string(kind))
		}
	case *GangObserved:
		c.version(p.Version, now)
		c.gang(p)
	case *GangStatus:
		c.session(p.Session, now)
		c.status(p)
	case *PermissionAsked:
		c.session(p.Session, now)
		if lasts := time.Duration(p.For); lasts <= 0 || lasts > PermissionMost {
			c.fail("permission for %s; want more than 0 and at most %s", lasts, PermissionMost)
		}
	case *WorkloadSubmitted:
		c.submission(p)
	case *WorkloadCancel:
		c.cancellation(p)
	}
	if c.err != nil {
		return fmt.Errorf("%w: %s event: %w", ErrMalformed, payload.EventType(), c.err)
	}
	return nil
}

// check keeps the first error.
type check struct{ err error }

func (c *check) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *check) version(v Version, now time.Time) {
	c.session(v.Session, now)
	if v.Seq > math.MaxInt64 {
		c.fail("sequence %d is larger than %d", v.Seq, int64(math.MaxInt64))
	}
}

// Credible reports whether a service may have reported the session at that time.
func Credible(session int64, at time.Time) bool {
	return session >= 0 && session <= at.Add(AheadMost).UnixNano()
}

func (c *check) session(session int64, now time.Time) {
	if !Credible(session, now) {
		c.fail("session %d is no time up to %s after now", session, AheadMost)
	}
}

func (c *check) count(what string, n, most int) {
	if n > most {
		c.fail("%d %s; want at most %d", n, what, most)
	}
}

// text checks text that may get into a database, which stores no NUL.
func (c *check) text(what string, texts ...string) {
	for _, text := range texts {
		switch {
		case len(text) > mostName:
			c.fail("%s %.20q... has %d bytes; want at most %d", what, text, len(text), mostName)
		case strings.ContainsRune(text, 0) || !utf8.ValidString(text):
			c.fail("%s %.40q is no text that can be stored", what, text)
		}
	}
}

// amounts of pods may be as large as they like: sums of them stay at the largest.
func (c *check) amounts(what string, amounts resource.List, most int64) {
	for name, amount := range amounts {
		c.text("resource", string(name))
		if amount < 0 || amount > most {
			c.fail("%s of %.100q is %d; want 0 to %d", what, string(name), amount, most)
		}
	}
}

func (c *check) node(o *NodeObserved) {
	n := &o.Node
	c.text("node", n.Name)
	c.text("answer", o.Answers)
	c.count("resources", len(n.Allocatable), mostOf)
	c.amounts("allocatable", n.Allocatable, mostAllocatable)
	c.amounts("unmanaged", n.Unmanaged, math.MaxInt64)
	c.count("labels", len(n.Labels), mostOf)
	for key, value := range n.Labels {
		c.text("label", key, value)
	}
	c.count("taints", len(n.Taints), mostTaints)
	for _, t := range n.Taints {
		c.text("taint", t.Key, t.Value, t.Effect)
	}
	for _, p := range n.UsedPorts {
		c.text("host port", p.Protocol, p.IP)
	}
}

func (c *check) gang(o *GangObserved) {
	c.text("workload", string(o.Workload), o.Answers)
	for i := range o.Pods {
		p := &o.Pods[i]
		c.text("pod", p.Name, p.PodSet, p.RayCluster, p.Node, p.Phase, p.Waits)
		c.amounts("requests", p.Requests, math.MaxInt64)
	}
}

func (c *check) status(s *GangStatus) {
	c.text("status", string(s.Workload), s.UID, s.Outcome, s.Yielded, s.Answers)
	if p := s.Provision; p != nil {
		c.text("request", p.Name, p.State)
	}
	for _, o := range s.Objects {
		c.text("object", o.APIVersion, o.Kind, o.Name, o.UID)
	}
	if s.Attempt < 0 || s.Attempt > mostAttempt {
		c.fail("attempt %d; want 0 to %d", s.Attempt, mostAttempt)
	}
	if s.Later < 0 || s.Later > mostAttempt/2 { // the attempts after it can be reported
		c.fail("later attempt %d; want 0 to %d", s.Later, mostAttempt/2)
	}
}
