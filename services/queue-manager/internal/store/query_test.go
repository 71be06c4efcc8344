package store_test

import (
	"slices"
	"testing"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// A page within some places has the workloads of these places alone, behind any workload
// that is named, and says that more follow only when more of them do.
func TestPagesWithinPlaces(t *testing.T) {
	t.Parallel()
	l := open(t)
	if err := l.SetQueues(t.Context(), l.term.Epoch, []state.Queue{
		{Name: "mine", Namespaces: []string{"a", "b"}, Strategy: quota.BestEffortFIFO}, {Name: "theirs", Namespaces: []string{"a", "c"}, Strategy: quota.BestEffortFIFO},
	}, quota.Config{}); err != nil {
		t.Fatal(err)
	}
	ids := map[string]workload.ID{}
	for i, each := range []struct{ name, queue, namespace string }{
		{"first", "mine", "a"}, {"hidden-1", "theirs", "a"}, {"second", "mine", "b"}, {"hidden-2", "theirs", "c"}, {"third", "mine", "a"}, {"hidden-3", "theirs", "a"},
	} {
		changes := admitted(int64(i+1), each.name, 1, 1, 1)
		w := &changes.Added[0].Workload
		w.Queue, w.Namespace = each.queue, each.namespace
		l.commit(t, changes)
		ids[each.name] = w.ID
	}
	all, some := []query.Place{{Queue: "mine"}}, []query.Place{{Queue: "mine", Namespaces: []string{"a", "z"}}, {Queue: "theirs", Namespaces: []string{"c"}}}
	for name, c := range map[string]struct {
		request query.WorkloadsRequest
		want    []string
		more    bool
	}{
		"a queue":                  {query.WorkloadsRequest{Within: all}, []string{"first", "second", "third"}, false},
		"its first page":           {query.WorkloadsRequest{Within: all, Limit: 1}, []string{"first"}, true},
		"its next page":            {query.WorkloadsRequest{Within: all, Limit: 1, AfterID: ids["first"]}, []string{"second"}, true},
		"its last page":            {query.WorkloadsRequest{Within: all, Limit: 1, AfterID: ids["second"]}, []string{"third"}, false},
		"namespaces of two queues": {query.WorkloadsRequest{Within: some}, []string{"first", "hidden-2", "third"}, false},
		"a name elsewhere":         {query.WorkloadsRequest{Within: all, Name: "hidden-1"}, nil, false},
		"a queue elsewhere":        {query.WorkloadsRequest{Within: all, Queue: "theirs", Limit: 1}, nil, false},
		"behind none":              {query.WorkloadsRequest{Within: all, AfterID: "00000000-0000-5000-8000-000000000000"}, nil, false},
		"behind no id":             {query.WorkloadsRequest{Within: all, AfterID: "x"}, nil, false},
		"everywhere":               {query.WorkloadsRequest{AfterID: ids["hidden-2"]}, []string{"third", "hidden-3"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, err := l.Workloads(t.Context(), c.request)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range answer.Workloads {
				got = append(got, w.Name)
			}
			if !slices.Equal(got, c.want) || (answer.Next != 0) != c.more {
				t.Errorf("the page is %v, next %d; want %v, more %t", got, answer.Next, c.want, c.more)
			}
		})
	}
}
