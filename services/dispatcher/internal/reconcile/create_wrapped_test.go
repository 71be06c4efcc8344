package reconcile

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// itemOf is the Thing n/b of an attempt of a workload.
func itemOf(id workload.ID, attempt int) *kubernetes.Wrapped {
	return &kubernetes.Wrapped{Object: kubernetes.Object{Kind: "Thing", Namespace: "n", Name: "b", UID: "uid-b", Workload: id, Attempt: attempt}}
}

// errNoKind is the answer about a kind that the API server does not serve.
var errNoKind = &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "example.org", Kind: "Thing"}}

var thingB = bundle.Identity{APIVersion: "v1", Kind: "Thing", Namespace: "n", Name: "b"}

// TestCreateWrapped: all objects of an AppWrapper are created in their order, or none
// stays.
func TestCreateWrapped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set     func(*cluster, *event.GangCommand)
		fails   int
		created []string
		refused string // a part of the message
		err     bool
	}{
		"all":                  {created: []string{"a", "b", "c"}},
		"the last is invalid":  {set: func(c *cluster, _ *event.GangCommand) { c.answers["create c"] = errInvalid }, created: []string{"a", "b"}, refused: "n/w creation failure: Thing c"},
		"no answer":            {set: func(c *cluster, _ *event.GangCommand) { c.answers["create c"] = errSilent }, fails: 30, created: []string{"a", "b"}, err: true},
		"forbidden, early":     {set: func(c *cluster, _ *event.GangCommand) { c.answers["create c"] = errDenied }, fails: earlyRetries - 1, created: []string{"a", "b"}, err: true},
		"forbidden, too often": {set: func(c *cluster, _ *event.GangCommand) { c.answers["create c"] = errDenied }, fails: earlyRetries, created: []string{"a", "b"}, refused: "forbidden"},
		"a user may not":       {set: func(c *cluster, _ *event.GangCommand) { c.denied = map[string]string{"c": "may not create it"} }, refused: "may not create it"},
		"not in the policy":    {set: func(_ *cluster, d *event.GangCommand) { d.ObjectPolicy = workload.ObjectPolicy{} }, refused: "not allowed"},
		"no right":             {set: func(c *cluster, _ *event.GangCommand) { c.lacking = map[string]string{"c": "it may not delete things"} }, fails: earlyRetries - 1, err: true},
		"no right, too often":  {set: func(c *cluster, _ *event.GangCommand) { c.lacking = map[string]string{"c": "it may not delete things"} }, fails: earlyRetries, refused: "it may not delete things"},
		"no such kind":         {set: func(c *cluster, _ *event.GangCommand) { c.answers["find c"] = errNoKind }, fails: unknownKindRetries - 1, err: true},
		"no such kind, for good": {set: func(c *cluster, _ *event.GangCommand) { c.answers["find c"] = errNoKind }, fails: unknownKindRetries,
			refused: "n/w creation failure: Thing c"},
		"another's":    {set: func(c *cluster, _ *event.GangCommand) { c.items[thingB] = itemOf("other", 1) }, created: []string{"a"}, refused: errForeign.Error()},
		"one is there": {set: func(c *cluster, _ *event.GangCommand) { c.items[thingB] = itemOf("w", 1) }, created: []string{"a", "c"}},
		"one of an attempt before": {set: func(c *cluster, _ *event.GangCommand) { c.items[thingB] = itemOf("w", 0) }, fails: 2,
			created: []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			command := wrapped(t, "a", "b", "c")
			command.Identity = &workload.Identity{User: "u"}
			if c.set != nil {
				c.set(p.cluster, &command)
			}
			p.Command(&command)
			p.fail(t, c.fails)
			err := p.see(t, 1)
			for range 2 { // what was created is taken back
				_ = p.see(t, 1)
			}
			if (err != nil) != c.err {
				t.Errorf("the look ended with %v, want an error: %v", err, c.err)
			}
			if !slices.Equal(p.cluster.created, c.created) {
				t.Errorf("created are %v, want %v", p.cluster.created, c.created)
			}
			if done := !c.err && c.refused == ""; p.status.Created != done || p.status.Refused != (c.refused != "") {
				t.Errorf("status %+v; want created %v, refused %v", p.status, done, c.refused != "")
			}
			if mends := strings.Contains(name, "too often"); p.status.Mendable != mends {
				t.Errorf("an administrator can mend it: %v, want %v", p.status.Mendable, mends)
			}
			if !strings.Contains(p.status.Message, c.refused) {
				t.Errorf("the message is %q, want %q in it", p.status.Message, c.refused)
			}
			if c.refused == "" {
				return
			}
			for id, item := range p.cluster.items {
				if item.Workload == "w" {
					t.Errorf("%s is left of what was refused", id)
				}
			}
		})
	}
}

// TestTheNameOfAnEndedWorkloadIsFree: an object that Muster made for a workload that has ended
// is replaced by that of its name; a workload that is being removed is waited for, and what
// belongs to any other stays.
func TestTheNameOfAnEndedWorkloadIsFree(t *testing.T) {
	t.Parallel()
	commanded := func(state string) func(*played) {
		return func(p *played) {
			command := wrapped(t, "b")
			command.Workload, command.State = "other", state
			p.Command(&command)
		}
	}
	recorded := func(record *workload.Record, err error) func(*played) {
		return func(p *played) {
			p.SetTruth(func(_ context.Context, id workload.ID) (*workload.Record, error) {
				if id != "other" {
					t.Errorf("queue-manager is asked about %q", id)
				}
				return record, err
			})
		}
	}
	of := func(change func(*kubernetes.Object)) *kubernetes.Object {
		o := itemOf("other", 1).Object
		o.Stamped = true
		if change != nil {
			change(&o)
		}
		return &o
	}
	const ( // what becomes of the new workload
		replaces = "replaces"
		waits    = "waits"
		refused  = "refused"
		fails    = "fails"
	)
	for name, c := range map[string]struct {
		object *kubernetes.Object
		set    func(*played)
		want   string
	}{
		"it has ended":                       {of(nil), commanded(event.Ended), replaces},
		"it is being removed":                {of(nil), commanded(event.Absent), waits},
		"it is live":                         {of(nil), commanded(event.Present), refused},
		"queue-manager says that it ended":   {of(nil), recorded(&workload.Record{Phase: workload.Succeeded}, nil), replaces},
		"queue-manager has no record of it":  {of(nil), recorded(nil, nil), replaces},
		"queue-manager says that it is live": {of(nil), recorded(&workload.Record{Phase: workload.Running, Holding: true}, nil), refused},
		"queue-manager says that it goes":    {of(nil), recorded(&workload.Record{Phase: workload.Cancelling, Holding: true}, nil), waits},
		"queue-manager is silent":            {of(nil), recorded(nil, errSilent), fails},
		"queue-manager is not asked":         {of(nil), nil, refused},
		"Muster did not make it":             {of(func(o *kubernetes.Object) { o.Stamped = false }), commanded(event.Ended), refused},
		"it is of another Muster":            {of(func(o *kubernetes.Object) { o.Workload = "" }), commanded(event.Ended), refused},
		"a user made it":                     {of(func(o *kubernetes.Object) { o.Resumed = true }), commanded(event.Ended), refused},
		"it goes with its AppWrapper":        {of(func(o *kubernetes.Object) { o.Owned = true }), commanded(event.Ended), refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.cluster.items[thingB] = &kubernetes.Wrapped{Object: *c.object}
			if c.set != nil {
				c.set(p)
			}
			command := wrapped(t, "a", "b")
			p.Command(&command)
			err := p.see(t, 3)
			got := waits
			switch {
			case err != nil:
				got = fails
			case p.status.Refused:
				got = refused
			case p.status.Created:
				got = replaces
			}
			if got != c.want {
				t.Errorf("the new workload %s, want it %s: %+v, %v", got, c.want, p.status, err)
			}
			if b := p.cluster.items[thingB]; (b == nil || b.Workload != "other" && b.Workload != "") != (c.want == replaces) {
				t.Errorf("the object that was there: %+v", b)
			}
		})
	}
}

// TestCreatedOnce: an object that was created before the creation failed is not created
// again, even if a user has deleted it meanwhile, and the next dispatcher knows of it.
func TestCreatedOnce(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.cluster.answers["create c"] = errSilent
	command := wrapped(t, "a", "b", "c")
	p.Command(&command)
	if err := p.see(t, 1); err == nil {
		t.Fatal("the look succeeds without an answer")
	}
	if len(p.status.Objects) != 2 || p.status.Created {
		t.Errorf("the status is %+v, want two objects", p.status)
	}
	delete(p.cluster.items, thingB)
	delete(p.cluster.answers, "create c")
	if err := p.see(t, 1); err != nil {
		t.Fatal(err)
	}
	if !p.status.Created || !slices.Equal(p.cluster.created, []string{"a", "b", "c"}) {
		t.Errorf("created are %v, status %+v; want each once", p.cluster.created, p.status)
	}
}
