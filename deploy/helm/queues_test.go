package helm_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/policyfile/queuesfile"
)

// policyValues has each list of a queues file.
const policyValues = `
queues:
- {name: research, namespaces: [team-a], life: {maxRunTime: 24h}}
resourceFlavors:
- {name: h100, nodeLabels: {gpu: h100}}
cohorts:
- {name: company}
clusterQueues:
- name: research
  cohortName: company
  queueingStrategy: Backfill
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: h100, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}]
- name: product
  cohortName: company
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: h100, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}]
localQueues:
- {name: serving, namespace: team-b, clusterQueue: product}
workloadPriorityClasses:
- {name: urgent, value: 100}
fairSharing: {enable: true}
`

// policyOf reads the values as Helm does.
func policyOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var values map[string]any
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// TestTheValuesTakeAQueuesFile: all that a queues file takes reaches queue-manager's file,
// and the namespaces of LocalQueues get rights.
func TestTheValuesTakeAQueuesFile(t *testing.T) {
	t.Parallel()
	objects := render(t, policyOf(t, policyValues))
	content, _, _ := unstructured.NestedString(objects["ConfigMap "+namespace+"/"+release+"-queues"].Object, "data", "queues.yaml")
	file, _, err := queuesfile.Read([]byte(content))
	if err != nil {
		t.Fatalf("queue-manager would refuse its file: %v\n%s", err, content)
	}
	var queues []string
	for _, q := range file.Queues {
		queues = append(queues, q.Name)
	}
	if !slices.Equal(queues, []string{"research", "serving"}) {
		t.Errorf("queues are %v", queues)
	}
	if len(file.Flavors) != 1 || len(file.Cohorts) != 1 || len(file.ClusterQueues) != 2 || len(file.LocalQueues) != 1 ||
		len(file.Priorities) != 1 || file.FairSharing == nil || !file.FairSharing.Enable {
		t.Errorf("the file lacks something of the values:\n%s", content)
	}
	for _, place := range []string{"team-a", "team-b"} {
		t.Run(place, func(t *testing.T) {
			if objects["RoleBinding "+place+"/"+namespace+"-"+release+"-dispatcher-writes"] == nil {
				t.Errorf("the dispatcher has no rights in %s", place)
			}
		})
	}
}

// TestLocalQueuesAreEnough: LocalQueues make queues, so that the list of queues may be empty.
func TestLocalQueuesAreEnough(t *testing.T) {
	t.Parallel()
	values := policyOf(t, policyValues)
	values["queues"] = []any{}
	content, _, _ := unstructured.NestedString(render(t, values)["ConfigMap "+namespace+"/"+release+"-queues"].Object, "data", "queues.yaml")
	if file, _, err := queuesfile.Read([]byte(content)); err != nil || len(file.Queues) != 1 || file.Queues[0].Name != "serving" {
		t.Errorf("queues are %+v, %v", file.Queues, err)
	}
}
