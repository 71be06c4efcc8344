package settings_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/services/queue-manager/internal/settings"
)

// A client reads how a cluster is and then gives its order. One that comes after the order to
// leave neither replaces nor deletes it: only having the cluster join does.
func TestAnOrderToLeaveIsNotReplaced(t *testing.T) {
	t.Parallel()
	var (
		cordon = query.HoldRequest{Cluster: "east", By: "ann"}
		drain  = query.HoldRequest{Cluster: "east", By: "ann", Drain: true}
		leave  = query.HoldRequest{Cluster: "east", By: "ann", Leave: true}
		force  = query.HoldRequest{Cluster: "east", By: "ann", Leave: true, Force: true}
		end    = query.HoldRequest{Cluster: "east", By: "ann", Resume: true}
		join   = query.HoldRequest{Join: &quota.Cluster{Name: "east"}, Resume: true}
		late   = query.HoldRequest{Join: &quota.Cluster{Name: "east"}} // read before it left
	)
	const left, forced = "cluster east has left; `muster cluster join east` has it back", "cluster east has left by force; `muster cluster join east`"
	inFile := settings.File{}
	inFile.Policy.Clusters = []quota.Cluster{{Name: "east"}}
	for name, c := range map[string]struct {
		file     settings.File
		was, new query.HoldRequest
		want     string // of the refusal; empty if it is done
	}{
		"a cordon":                      {was: leave, new: cordon, want: left},
		"a drain":                       {was: leave, new: drain, want: left},
		"a drain after one by force":    {was: force, new: drain, want: left},
		"an end of the cordon":          {was: leave, new: end, want: left},
		"a leave after one by force":    {was: force, new: leave, want: forced},
		"the same leave":                {was: leave, new: leave},
		"a leave by force":              {was: leave, new: force},
		"the cluster joins":             {was: force, new: join},
		"a join that knows of no order": {was: leave, new: late},
		"a leave of a drained cluster":  {was: drain, new: leave},
		"an end of a drain":             {was: drain, new: end},
		"a cordon of a drained cluster": {was: drain, new: cordon},
		"an end where a file has it":    {file: inFile, was: leave, new: end},
		"a cordon where a file has it":  {file: inFile, was: leave, new: cordon, want: left},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, err := c.file.Plan(nil, "", changeOf(t, c.was), nil, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			before := maps.Clone(plan.Set)
			plan, err = c.file.Plan(before, "", changeOf(t, c.new), nil, time.Time{})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the answer is %v, want %q", err, c.want)
			case c.new.Join != nil && c.new.Resume:
				if _, there := plan.Set[kueue.Key{Kind: kueue.ClusterCordon, Name: "east"}]; there {
					t.Error("the order stands after the cluster has joined")
				}
			}
		})
	}
}

func changeOf(t *testing.T, r query.HoldRequest) query.ConfigureRequest {
	t.Helper()
	change, err := r.ConfigureRequest(time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	return change
}
