package quota_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// A price is of a core, a GiB or one of everything else, in an hour.
func TestWhatAGangCosts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prices   string
		requests resource.List
		want     int64 // thousandths
	}{
		"devices":                {`{"nvidia.com/gpu": "2.5"}`, resource.List{"nvidia.com/gpu": 8}, 2 * 20_000},
		"half a core":            {`{"cpu": 1}`, resource.List{"cpu": 500}, 2 * 500},
		"one and a half GiB":     {`{"memory": "0.01"}`, resource.List{"memory": 3 << 29}, 2 * 15},
		"what has no price":      {`{"cpu": 1}`, resource.List{"nvidia.com/gpu": 8}, 0},
		"several":                {`{"cpu": "0.5", "nvidia.com/gpu": 2}`, resource.List{"cpu": 4000, "nvidia.com/gpu": 1}, 2 * 4000},
		"more than can be named": {`{"nvidia.com/gpu": 1000000}`, resource.List{"nvidia.com/gpu": math.MaxInt64}, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var cost quota.Cost
			if err := json.Unmarshal([]byte(c.prices), &cost); err != nil {
				t.Fatal(err)
			}
			if got := cost.Of([]workload.PodSet{{Count: 2, Template: workload.Template{Requests: c.requests}}}); got != c.want {
				t.Errorf("two pods cost %d, want %d", got, c.want)
			}
			written, err := json.Marshal(cost)
			var again quota.Cost
			if err != nil || json.Unmarshal(written, &again) != nil || again.Of([]workload.PodSet{{Count: 2, Template: workload.Template{Requests: c.requests}}}) != c.want {
				t.Errorf("prices are written as %s, %v", written, err)
			}
		})
	}
}

func TestWhatIsNoCluster(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ config, want string }{
		"a negative price": {`{"clusters": [{"name": "a", "costPerHour": {"cpu": -1}}]}`, "want a price from 0 to 1000000"},
		"a price too high": {`{"clusters": [{"name": "a", "costPerHour": {"cpu": 1000001}}]}`, "want a price from 0 to 1000000"},
		"no name":          {`{"clusters": [{}]}`, "clusters[0].name: is missing"},
		"a bad name":       {`{"clusters": [{"name": "A"}]}`, `clusters[0].name: "A": want lower-case letters`},
		"twice":            {`{"clusters": [{"name": "a"}, {"name": "a"}]}`, "is a duplicate of clusters[0]"},
		"the name's label": {`{"clusters": [{"name": "a", "labels": {"muster.dev/cluster": "b"}}]}`, "is the name of the cluster"},
		"a bad key":        {`{"clusters": [{"name": "a", "labels": {"a,b": "c"}}]}`, "want a key of letters"},
		"a queue twice":    {`{"clusters": [{"name": "a", "queues": ["q", "q"]}]}`, "clusters[0].queues[1]"},
		"a flavor twice":   {`{"clusters": [{"name": "a", "flavors": ["f", "f"]}]}`, "clusters[0].flavors[1]"},
		"no flavor's name": {`{"clusters": [{"name": "a", "flavors": [""]}]}`, "want the names of ResourceFlavors"},
		"too long a name":  {`{"clusters": [{"name": "a", "flavors": ["` + strings.Repeat("f", 318) + `"]}]}`, "want at most 317"},
		"too many flavors": {`{"clusters": [{"name": "a", "flavors": ["f"` + strings.Repeat(`, "f"`, 1000) + `]}]}`, "has 1001 flavors; want at most 1000"},
		"no time":          {`{"clusterCordons": [{"name": "a", "by": "ann"}]}`, "clusterCordons[0].since: is missing"},
		"nobody":           {`{"clusterCordons": [{"name": "a", "since": "2026-11-21T12:00:00Z"}]}`, "want who cordons the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := refusalOf(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s is refused with %v, want %s", c.config, err, c.want)
			}
		})
	}
}

// refusalOf is why a configuration is not valid.
func refusalOf(written string) error {
	var config quota.Config
	if err := json.Unmarshal([]byte(written), &config); err != nil {
		return err
	}
	return config.Validate()
}

// A cluster that states flavors offers no others; of several that lack the first by name is named.
func TestWhichFlavorsAClusterOffers(t *testing.T) {
	t.Parallel()
	tree, err := quota.New(quota.Config{Clusters: []quota.Cluster{{Name: "some", Flavors: []string{"spot"}}, {Name: "all"}}})
	if err != nil {
		t.Fatal(err)
	}
	given := func(flavors ...string) (all []workload.PodSetFlavors) {
		for _, f := range flavors {
			all = append(all, workload.PodSetFlavors{PodSet: f, Flavors: map[resource.Name]string{"cpu": f}})
		}
		return all
	}
	for name, c := range map[string]struct {
		cluster string
		flavors []workload.PodSetFlavors
		want    string
	}{
		"offered":          {"some", given("spot"), ""},
		"not offered":      {"some", given("spot", "reserved"), "reserved"},
		"several are not":  {"some", given("reserved", "on-demand"), "on-demand"},
		"no flavors":       {"some", nil, ""},
		"one that has all": {"all", given("reserved"), ""},
		"not described":    {"other", given("reserved"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tree.NotOffered(c.cluster, c.flavors); got != c.want {
				t.Errorf("cluster %s lacks %q, want %q", c.cluster, got, c.want)
			}
		})
	}
}
