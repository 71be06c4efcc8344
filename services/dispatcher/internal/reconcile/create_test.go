package reconcile

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// rayCommand starts the RayCluster n/r.
func rayCommand(attempt int) event.GangCommand {
	return event.GangCommand{
		Workload: "w", Cluster: "c", Attempt: attempt, Epoch: 1, Order: int64(attempt), State: event.Present, Kind: "RayCluster",
		Namespace: "n", Name: "r", ForceAfter: workload.Duration(time.Minute), Manifest: json.RawMessage(rayCluster),
	}
}

// rayOf is the RayCluster n/r of an attempt of a workload.
func rayOf(id workload.ID, attempt int) *kubernetes.Object {
	return &kubernetes.Object{Kind: "RayCluster", Namespace: "n", Name: "r", UID: "uid-r", Workload: id, Attempt: attempt, Stamped: true}
}

// endedJob is an object like rayOf of an ended workload, as it is kept to be read.
func endedJob(change func(*kubernetes.Object)) *kubernetes.Object {
	o := rayOf("other", 1)
	o.UID, o.Outcome = "uid-ended", event.OutcomeSucceeded
	if change != nil {
		change(o)
	}
	return o
}

// TestTheObjectOfALiveWorkloadIsNotReplaced: a finished job of which a workload still has a
// command to be present stays.
func TestTheObjectOfALiveWorkloadIsNotReplaced(t *testing.T) {
	t.Parallel()
	for state, refused := range map[string]bool{event.Present: true, event.Absent: true, event.Ended: false, event.Forgotten: false} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			has(endedJob(nil))(p.cluster, nil)
			other, command := rayCommand(1), rayCommand(1)
			other.Workload, other.State = "other", state
			p.Command(&other)
			p.Command(&command)
			if err := p.see(t, 2); err != nil {
				t.Fatal(err)
			}
			if p.status.Refused != refused || p.status.Created == refused {
				t.Errorf("the status is %+v, want refused %v", p.status, refused)
			}
		})
	}
}

// TestCreateRayObject: what each answer of the API server leads to. A refusal is for
// good only when trying again does not mend it.
func TestCreateRayObject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set     func(*cluster, *event.GangCommand)
		fails   int // looks at it, and with it failures
		looks   int // after them; 0 is one
		created bool
		refused string // a part of the message
		gone    bool
		err     bool // the look after the failures fails
	}{
		"created":                {created: true},
		"invalid":                {set: answers("create r", errInvalid), refused: "is invalid"},
		"no answer":              {set: answers("create r", errSilent), fails: 30, err: true},
		"forbidden, early":       {set: answers("create r", errDenied), fails: earlyRetries - 1, err: true},
		"forbidden, too often":   {set: answers("create r", errDenied), fails: earlyRetries, refused: "forbidden"},
		"of another workload":    {set: has(rayOf("other", 1)), refused: "does not belong to this workload"},
		"of no workload":         {set: has(rayOf("", 0)), refused: "does not belong to this workload"},
		"of no job of Muster's":  {set: has(endedJob(func(o *kubernetes.Object) { o.Stamped = false })), refused: "does not belong to this workload"},
		"of a job that runs":     {set: has(endedJob(func(o *kubernetes.Object) { o.Outcome = "" })), refused: "kubectl delete rayclusters.ray.io -n n r"},
		"of a user's ended job":  {set: has(endedJob(func(o *kubernetes.Object) { o.Resumed = true })), refused: "kubectl delete rayclusters.ray.io -n n r"},
		"of an ended job":        {set: has(endedJob(nil)), looks: 2, created: true},
		"another's, on its way":  {set: has(endedJob(func(o *kubernetes.Object) { o.Deleting, o.Stamped = true, false }))},
		"created before restart": {set: has(rayOf("w", 1)), created: true},
		"not cached":             {set: hasUncached(rayOf("w", 1)), created: true},
		"another's, not cached":  {set: hasUncached(rayOf("other", 1)), refused: "does not belong to this workload"},
		"user may not":           {set: user(map[string]string{"r": "may not create it"}), refused: "not allowed: may not create it"},
		"user may":               {set: user(nil), created: true},
		"no answer for the user": {set: func(c *cluster, d *event.GangCommand) {
			d.Identity = &workload.Identity{User: "u"}
			c.answers["allow r"] = errSilent
		}, fails: 30, err: true},
		"manifest without pods": {set: func(_ *cluster, d *event.GangCommand) { d.Manifest = json.RawMessage(`{"spec": 1}`) }, refused: "stamp RayCluster"},
		"held":                  {set: held("uid-r"), created: true},
		"held, gone":            {set: held("uid of one before"), gone: true},
		"held, resumed": {set: func(c *cluster, d *event.GangCommand) {
			held("uid-r")(c, d)
			c.answers["release r"] = kubernetes.ErrNotSuspended
		}, refused: "is no longer suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			command := rayCommand(1)
			if c.set != nil {
				c.set(p.cluster, &command)
			}
			p.Command(&command)
			p.fail(t, c.fails)
			err := p.see(t, max(c.looks, 1))
			if (err != nil) != c.err {
				t.Errorf("the look ended with %v, want an error: %v", err, c.err)
			}
			if p.status.Created != c.created || p.status.Refused != (c.refused != "") || p.status.Gone != c.gone {
				t.Errorf("status %+v; want created %v, refused %v, gone %v", p.status, c.created, c.refused != "", c.gone)
			}
			if mends := strings.Contains(name, "too often"); p.status.Mendable != mends {
				t.Errorf("an administrator can mend it: %v, want %v", p.status.Mendable, mends)
			}
			if c.created && p.status.UID != "uid-r" {
				t.Errorf("the UID is %q, want that of the object", p.status.UID)
			}
			if !strings.Contains(p.status.Message, c.refused) {
				t.Errorf("the message is %q, want %q in it", p.status.Message, c.refused)
			}
		})
	}
}

func answers(call string, err error) func(*cluster, *event.GangCommand) {
	return func(c *cluster, _ *event.GangCommand) { c.answers[call] = err }
}

func has(o *kubernetes.Object) func(*cluster, *event.GangCommand) {
	return func(c *cluster, _ *event.GangCommand) { copied := *o; c.objects["r"] = &copied }
}

func hasUncached(o *kubernetes.Object) func(*cluster, *event.GangCommand) {
	return func(c *cluster, d *event.GangCommand) {
		has(o)(c, d)
		c.uncached = map[string]bool{"r": true}
	}
}

func user(denied map[string]string) func(*cluster, *event.GangCommand) {
	return func(c *cluster, d *event.GangCommand) {
		d.Identity, c.denied = &workload.Identity{User: "u"}, denied
	}
}

// held has the manifest name the suspended object with the UID, while the cluster has
// uid-r, which the cache of released objects does not show.
func held(uid string) func(*cluster, *event.GangCommand) {
	return func(c *cluster, d *event.GangCommand) {
		hasUncached(rayOf("", 0))(c, d)
		d.Manifest = json.RawMessage(strings.Replace(rayCluster, `"name": "r"`, `"name": "r", "annotations": {"`+kube.SuspendedUIDKey+`": "`+uid+`"}`, 1))
	}
}

// TestReplaceRayObject: the object of an earlier attempt is deleted first, and what
// does not go is named after a while.
func TestReplaceRayObject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stays   bool
		after   time.Duration
		created bool
		refused bool
	}{
		"it goes":            {created: true},
		"it stays":           {stays: true},
		"it stays, in time":  {stays: true, after: removeWithin},
		"it stays for ever":  {stays: true, after: removeWithin + 1, refused: true},
		"it goes at the end": {after: removeWithin + 1, created: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.cluster.objects["r"] = rayOf("w", 1)
			p.cluster.objects["r"].Deleting = c.stays
			command := rayCommand(2)
			p.Command(&command)
			for range 2 {
				if err := p.see(t, 1); err != nil {
					t.Fatal(err)
				}
				p.clock = p.clock.Add(c.after)
			}
			if p.status.Created != c.created || p.status.Refused != c.refused {
				t.Errorf("status %+v; want created %v, refused %v", p.status, c.created, c.refused)
			}
			if got := slices.Contains(p.cluster.deleted, "r"); got == c.stays {
				t.Errorf("deleted are %v", p.cluster.deleted)
			}
		})
	}
}

// TestAnswersThatMayBeEarly separates the answers that may be too early.
func TestAnswersThatMayBeEarly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err                 error
		mayBeEarly, forGood bool
	}{
		"forbidden": {err: errDenied, mayBeEarly: true},
		"invalid":   {err: errInvalid, forGood: true},
		"too large": {err: apierrors.NewRequestEntityTooLargeError("12 MB"), forGood: true},
		"silence":   {err: errSilent},
		"conflict":  {err: exists("x")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if mayBeEarly(c.err) != c.mayBeEarly || refusedForGood(c.err) != c.forGood {
				t.Errorf("%v: mayBeEarly %v, for good %v", c.err, mayBeEarly(c.err), refusedForGood(c.err))
			}
		})
	}
}
