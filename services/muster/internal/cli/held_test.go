package cli

import (
	"testing"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/exit"
)

// TestWhatAHoldIsOf: a name of several queues is held in one namespace or on demand in all, and
// a hold is found by the words by which it was made.
func TestWhatAHoldIsOf(t *testing.T) {
	t.Parallel()
	everywhere, inA, inShared := &quota.QueueStop{Name: "both"}, &quota.QueueStop{Name: "user-queue", Namespace: "team-a"}, &quota.QueueStop{Name: "research", Namespace: "shared"}
	queues := []query.Queue{
		{Name: "both", Namespaces: []string{"team-a"}, Hold: everywhere, Waiting: 1}, {Name: "both", Namespaces: []string{"team-b"}, Hold: everywhere, Waiting: 2},
		{Name: "research", Namespaces: []string{"research", "shared"}, Hold: inShared},
		{Name: "user-queue", Namespaces: []string{"team-a"}, Hold: inA, Waiting: 1}, {Name: "user-queue", Namespaces: []string{"team-b"}, Waiting: 2},
	}
	for name, c := range map[string]struct {
		queue, namespace string
		all              bool
		want             held
		code             int
	}{
		"ambiguous":              {queue: "user-queue", code: exit.Usage},
		"one of them":            {queue: "user-queue", namespace: "team-b", want: held{what: "queue user-queue of namespace team-b", waiting: 2}},
		"one that is held":       {queue: "user-queue", namespace: "team-a", want: held{what: "queue user-queue of namespace team-a", waiting: 1, now: inA}},
		"all of the name":        {queue: "user-queue", all: true, want: held{what: "queue user-queue", waiting: 3, partly: inA}},
		"all are held":           {queue: "both", want: held{what: "queue both", waiting: 3, now: everywhere}},
		"one of all that are":    {queue: "both", namespace: "team-b", want: held{what: "queue both of namespace team-b", waiting: 2, now: everywhere}},
		"the only one":           {queue: "research", want: held{what: "queue research", partly: inShared}},
		"a namespace of it":      {queue: "research", namespace: "shared", want: held{what: "queue research of namespace shared", now: inShared}},
		"its other namespace":    {queue: "research", namespace: "research", want: held{what: "queue research of namespace research", partly: inShared}},
		"not there":              {queue: "other", all: true, code: exit.NotFound},
		"not in the namespace":   {queue: "research", namespace: "team-a", code: exit.NotFound},
		"not there in any place": {queue: "other", code: exit.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &holdOptions{namespace: c.namespace, all: c.all}
			got, err := o.findQueue(queues, c.queue)
			if exit.Code(err) != c.code {
				t.Fatalf("the error is %v, want exit code %d", err, c.code)
			}
			c.want.HoldRequest = query.HoldRequest{Queue: c.queue, Namespace: c.namespace}
			if err == nil && got != c.want {
				t.Errorf("found %+v, want %+v", got, c.want)
			}
		})
	}
}
