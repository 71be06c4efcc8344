package ray

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/workload"
)

// gang returns a RayCluster whose worker template has what is given in its
// metadata and its spec, and a head with what is given in its spec.
func gang(metadata, worker, head string) []byte {
	return []byte(`{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "c"}, "spec": {
		"headGroupSpec": {"rayStartParams": {}, "template": {"metadata": {"labels": {"app": "x"}}, "spec": {` + head + ` "containers": [{"name": "h", "image": "i"}]}}},
		"workerGroupSpecs": [{"groupName": "w", "replicas": 2, "minReplicas": 0, "maxReplicas": 9, "numOfHosts": 2, "rayStartParams": {}, "template": {
			"metadata": {"labels": {"app": "x"}, ` + metadata + `}, "spec": {` + worker + ` "containers": [{"name": "w", "image": "i"}]}}}]}}`)
}

func affinity(kind, term string) string {
	return `"affinity": {"` + kind + `": {"requiredDuringSchedulingIgnoredDuringExecution": [` + term + `]}},`
}

const (
	plainMeta = `"annotations": {}`
	all       = `{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}, "matchLabelKeys": ["ray.io/cluster"]}`
	workers   = `{"topologyKey": "zone", "labelSelector": {"matchLabels": {"ray.io/group": "w"}}, "matchLabelKeys": ["ray.io/cluster"]}`
	theHead   = `{"topologyKey": "zone", "labelSelector": {"matchLabels": {"ray.io/node-type": "head"}}, "matchLabelKeys": ["muster.dev/workload"]}`
)

func TestConstraintsWithinTheGang(t *testing.T) {
	t.Parallel()
	spread := `"topologySpreadConstraints": [{"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
		"labelSelector": {"matchLabels": {"app": "x"}}, "matchLabelKeys": ["ray.io/cluster", "ray.io/group"]}],`
	for _, c := range []struct {
		name     string
		manifest []byte
		want     workload.PodSet // of the workers, without requests
	}{
		{"anti-affinity to all", gang(plainMeta, affinity("podAntiAffinity", all), ""), workload.PodSet{
			Template: workload.Template{Apart: []workload.Apart{{TopologyKey: "zone", PodSets: []string{"headgroup", "w"}}}}}},
		{"affinity to each other", gang(plainMeta, affinity("podAffinity", workers), ""), workload.PodSet{
			Template: workload.Template{Together: []workload.Together{{TopologyKey: "zone", PodSets: []string{"w"}}}}}},
		{"affinity to the head", gang(plainMeta, affinity("podAffinity", theHead), ""), workload.PodSet{
			Template: workload.Template{Together: []workload.Together{{TopologyKey: "zone", PodSets: []string{"headgroup"}}}}}},
		{"spread", gang(plainMeta, spread, ""), workload.PodSet{
			Template: workload.Template{Spread: []workload.Spread{{TopologyKey: "rack", MaxSkew: 1}}}}},
		{"required topology", gang(`"annotations": {"kueue.x-k8s.io/podset-required-topology": "block"}`, "", ""), workload.PodSet{
			Topology: &workload.Topology{Mode: workload.TopologyRequired, Level: "block"}}},
		{"unconstrained topology", gang(`"annotations": {"kueue.x-k8s.io/podset-unconstrained-topology": "true"}`, "", ""), workload.PodSet{}},
		{"preferred topology, slices of a replica", gang(`"annotations": {"muster.dev/podset-preferred-topology": "block", "kueue.x-k8s.io/podset-slice-required-topology": "rack"}`, "", ""), workload.PodSet{
			Topology: &workload.Topology{Mode: workload.TopologyPreferred, Level: "block", SliceSize: 2, SliceLevel: "rack"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			submission, err := Read(c.manifest)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				return
			}
			got := submission.PodSets[1]
			got.Template.Requests, got.Template.Unset, got.Template.Asks = nil, nil, nil
			c.want.Name, c.want.Role, c.want.Count = "w", workload.RoleWorker, 4
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.name, diff)
			}
		})
	}
}

func TestConstraintsThatReachBeyondTheGangAreRefused(t *testing.T) {
	t.Parallel()
	change := func(term, before, after string) string { return strings.Replace(term, before, after, 1) }
	annotated := func(text string) []byte { return gang(`"annotations": {`+text+`}`, "", "") }
	spread := func(selector string) []byte {
		return gang(plainMeta, `"topologySpreadConstraints": [{"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", `+selector+`}],`, "")
	}
	for _, c := range []struct {
		name     string
		manifest []byte
		want     string
	}{
		{"pods of others", gang(plainMeta, affinity("podAntiAffinity", change(all, `"ray.io/cluster"`, `"app"`)), ""), "may match pods of others; add matchLabelKeys: [ray.io/cluster]"},
		{"other namespaces", gang(plainMeta, affinity("podAntiAffinity", change(all, "{", `{"namespaces": ["x"], `)), ""), "namespaces: is set; remove it"},
		{"a value that is not known", gang(plainMeta, affinity("podAffinity", change(all, `"app": "x"`, `"ray.io/cluster": "c"`)), ""), "whose value is not known yet; name it in matchLabelKeys"},
		{"no pod", gang(plainMeta, affinity("podAffinity", change(all, `"app": "x"`, `"app": "y"`)), ""), "matches no pod of the gang"},
		{"a term that the head lacks", gang(plainMeta, affinity("podAffinity", all), ""), `matches pods of "headgroup", which do not have the same term`},
		{"each waits for the other", gang(plainMeta, affinity("podAffinity", theHead), affinity("podAffinity", workers)), "do not have the same term"},
		{"spread over several pod sets", spread(`"labelSelector": {"matchLabels": {"app": "x"}}, "matchLabelKeys": ["ray.io/cluster"]`), `labelSelector: matches ["headgroup" "w"]; want one that matches the pods of "w" and no others`},
		{"spread by taints", spread(`"nodeTaintsPolicy": "Honor", "labelSelector": {}, "matchLabelKeys": ["ray.io/cluster", "ray.io/group"]`), `nodeTaintsPolicy: is "Honor"`},
		{"least domains", spread(`"minDomains": 2, "labelSelector": {}, "matchLabelKeys": ["ray.io/cluster", "ray.io/group"]`), "minDomains: is 2; remove it"},
		{"two modes", annotated(`"muster.dev/podset-required-topology": "a", "muster.dev/podset-preferred-topology": "a"`), "choose one of them"},
		{"two values", annotated(`"muster.dev/podset-required-topology": "a", "kueue.x-k8s.io/podset-required-topology": "b"`), "choose one of them"},
		{"slices that are not whole", annotated(`"muster.dev/podset-slice-required-topology": "a", "muster.dev/podset-slice-size": "8"`), "podset-slice-size: is 8, and there are 4 pods"},
		{"slices that cut replicas", annotated(`"muster.dev/podset-slice-required-topology": "a", "muster.dev/podset-slice-size": "3"`), "is 3, and a replica has 2 hosts; want slices of whole replicas"},
		{"no number", annotated(`"muster.dev/podset-slice-required-topology": "a", "muster.dev/podset-slice-size": "two"`), `is "two"; want a whole number`},
		{"slices of several layers", annotated(`"kueue.x-k8s.io/podset-slice-required-topology-constraints": "[]"`), "podset-slice-required-topology-constraints: is set; slices of several layers are not supported"},
		{"unconstrained and required", annotated(`"kueue.x-k8s.io/podset-unconstrained-topology": "true", "kueue.x-k8s.io/podset-required-topology": "a"`), "has podset-unconstrained-topology and another topology; choose one of them"},
		{"unconstrained and preferred", annotated(`"kueue.x-k8s.io/podset-unconstrained-topology": "true", "kueue.x-k8s.io/podset-preferred-topology": "a"`), "has podset-unconstrained-topology and another topology"},
		{"neither true nor false", annotated(`"kueue.x-k8s.io/podset-unconstrained-topology": "rack"`), `podset-unconstrained-topology: is "rack"; want true or false`},
		{"no level", annotated(`"muster.dev/podset-slice-size": "2"`), "is set without podset-slice-required-topology"},
		{"no label", annotated(`"muster.dev/podset-required-topology": "a b"`), "cannot be the key of a label"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Read(c.manifest); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.want)
			}
		})
	}
}
