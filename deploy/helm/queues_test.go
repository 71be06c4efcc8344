package helm_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/policyfile/queuesfile"
)

// policyValues has each part of a queues file, and each field of a queue.
const policyValues = `
queues:
- name: research
  namespaces: [team-a]
  strategy: Backfill
  life: {maxRunTime: 24h}
  limits: {pods: 2000000}
  podPolicy: {privileged: true}
  objectPolicy: {externalIPs: true}
  submitters: [{who: [http/alice]}]
  identities: [{who: [http/alice], user: alice}]
  strayPods: warn
  onLostCluster: failover
  homeObjects: move
  preferClusters: data=images
  carries: [{kind: Secret, name: pull, from: main}]
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
- {name: urgent, value: 1000000}
fairSharing: {enable: true}
admissionFairSharing: {usageHalfLifeTime: 168h, resourceWeights: {nvidia.com/gpu: 1, cpu: 0.1}}
admissionChecks:
- {name: budget, controllerName: example.com/budget}
provisioningRequestConfigs:
- {name: autoscaler, provisioningClassName: check-capacity.autoscaling.x-k8s.io}
topologies:
- {name: racks, levels: [{nodeLabel: example.com/block}, {nodeLabel: example.com/rack}]}
clusters:
- {name: east, labels: {site: a}, costPerHour: {nvidia.com/gpu: "2.5"}}
reservations:
- {name: driver, since: 2026-11-21T12:00:00Z, from: 2026-12-01T08:00:00Z, until: 2026-12-01T12:00:00Z, nodes: [gpu-1], by: ann}
budgets:
- {name: research-gpus, queue: research, resource: nvidia.com/gpu, hours: 1000, period: Month, action: Hold}
queueHolds:
- {name: research, since: 2026-12-01T08:00:00Z, by: ann, why: bad images}
clusterQueueHolds:
- {name: product, since: 2026-12-01T08:00:00Z, by: ann}
clusterCordons:
- {name: east, since: 2026-12-01T08:00:00Z, by: ann, drain: true}
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
	written, err := yaml.Marshal(policyOf(t, policyValues))
	if err != nil {
		t.Fatal(err)
	}
	direct, _, err := queuesfile.Read(written)
	if err != nil {
		t.Fatalf("the values are no queues file: %v", err)
	}
	if diff := cmp.Diff(direct, file); diff != "" {
		t.Errorf("the file of the chart differs from the values (-values +chart):\n%s", diff)
	}
	for _, of := range []any{file, file.Config, file.Queues[0]} {
		v := reflect.ValueOf(of)
		for i := range v.NumField() {
			if v.Field(i).IsZero() && v.Type().Field(i).Name != "BudgetHolds" { // which no file may have
				t.Errorf("the values set no %s.%s, so this test cannot show that the chart takes it", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
	var queues []string
	for _, q := range file.Queues {
		queues = append(queues, q.Name)
	}
	if !slices.Equal(queues, []string{"research", "serving"}) {
		t.Errorf("queues are %v", queues)
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
