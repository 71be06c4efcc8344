package quota_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUndefinedCohortsAreNoted(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, policy string
		want         []string
	}{
		{"defined", `{"cohorts": [{"name": "company"}], "clusterQueues": [{"name": "a", "cohortName": "company"}]}`, nil},
		{"several name one that is not defined, as Kueue's users do", `{"clusterQueues": [{"name": "a", "cohortName": "all"}, {"name": "b", "cohortName": "all"}]}`, nil},
		{
			"misspelt", `{"cohorts": [{"name": "company"}], "clusterQueues": [{"name": "a", "cohortName": "company"}, {"name": "b", "cohortName": "compnay"}]}`,
			[]string{`clusterQueue "b": cohortName "compnay": no cohort of that name is defined and nothing else names it, so there is no quota to borrow; correct the name (there are: company), or define it under cohorts`},
		},
		{
			"one of several that are not defined is misspelt", `{"clusterQueues": [{"name": "a", "cohortName": "all"}, {"name": "b", "cohortName": "all"}, {"name": "c", "cohortName": "al"}]}`,
			[]string{`clusterQueue "c": cohortName "al": no cohort of that name is defined and nothing else names it, so there is no quota to borrow; correct the name (there are: all), or define it under cohorts`},
		},
		{
			"alone", `{"clusterQueues": [{"name": "a", "cohortName": "all"}]}`,
			[]string{`clusterQueue "a": cohortName "all": no cohort of that name is defined and nothing else names it, so there is no quota to borrow; define it, or leave it out`},
		},
		{
			"a parent", `{"cohorts": [{"name": "team", "parentName": "compnay"}, {"name": "company"}], "clusterQueues": [{"name": "a", "cohortName": "team"}]}`,
			[]string{`cohort "team": parentName "compnay": no cohort of that name is defined and nothing else names it, so there is no quota to borrow; correct the name (there are: company, team), or define it under cohorts`},
		},
		{
			"several misspell it alike", `{"cohorts": [{"name": "company"}], "clusterQueues": [{"name": "a", "cohortName": "compnay"}, {"name": "b", "cohortName": "compnay"}]}`,
			[]string{`cohort "compnay" is named by 2 (clusterQueue "a": cohortName, clusterQueue "b": cohortName) and not defined, so it has no quota, weight or parent of its own; correct the name (there are: company), or define it under cohorts`},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			config := configOf(t, c.policy)
			if diff := cmp.Diff(c.want, config.Notes()); diff != "" {
				t.Errorf("%s: notes (-want +got):\n%s", c.name, diff)
			}
		})
	}
}
