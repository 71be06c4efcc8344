package submission

import (
	"encoding/json"
	"strings"
	"testing"

	"muster.dev/muster/pkg/manifest/ray"
)

// podOf is a pod template with a name of every kind that Kubernetes checks.
const podOf = `{
	"metadata": {"labels": {"a.b/c": "d"}, "annotations": {"note": "any\ntext"}},
	"spec": {
		"initContainers": [{"name": "prepare", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
		"containers": [{
			"name": "main", "image": "i", "ports": [{"name": "dashboard", "containerPort": 8265}],
			"env": [{"name": "A.b-C_1", "value": "any\ntext"},
				{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "the.key"}}},
				{"name": "OTHER", "valueFrom": {"configMapKeyRef": {"name": "others", "key": "a"}}}],
			"envFrom": [{"prefix": "P_", "configMapRef": {"name": "more"}}, {"secretRef": {"name": "most"}}],
			"volumeMounts": [{"name": "data", "mountPath": "/data"}]
		}],
		"volumes": [{"name": "data", "emptyDir": {}},
			{"name": "claim", "persistentVolumeClaim": {"claimName": "claim"}},
			{"name": "map", "configMap": {"name": "map", "items": [{"key": "k", "path": "p"}]}},
			{"name": "keys", "secret": {"secretName": "keys"}},
			{"name": "all", "projected": {"sources": [{"secret": {"name": "keys"}}, {"configMap": {"name": "map"}}]}}],
		"nodeSelector": {"zone": "a"}, "tolerations": [{"key": "gpu", "operator": "Exists"}],
		"hostname": "host", "subdomain": "sub", "serviceAccountName": "default", "priorityClassName": "high",
		"imagePullSecrets": [{"name": "pull"}], "readinessGates": [{"conditionType": "a.b/ready"}], "restartPolicy": "Never"
	}}`

// shapes are documents with a pod template, of each kind that is read.
var shapes = map[string]string{
	"RayCluster, head":  `{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"a"},"spec":{"headGroupSpec":{"template":POD}}}`,
	"RayCluster, group": `{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"a"},"spec":{"headGroupSpec":{"template":GOOD},"workerGroupSpecs":[{"groupName":"g","replicas":1,"template":POD}]}}`,
	"RayJob, head":      `{"apiVersion":"ray.io/v1","kind":"RayJob","metadata":{"name":"a"},"spec":{"entrypoint":"x","rayClusterSpec":{"headGroupSpec":{"template":POD}}}}`,
	"RayJob, submitter": `{"apiVersion":"ray.io/v1","kind":"RayJob","metadata":{"name":"a"},"spec":{"entrypoint":"x","submitterPodTemplate":POD,"rayClusterSpec":{"headGroupSpec":{"template":GOOD}}}}`,
	"RayService":        `{"apiVersion":"ray.io/v1","kind":"RayService","metadata":{"name":"a"},"spec":{"rayClusterConfig":{"headGroupSpec":{"template":POD}}}}`,
	"wrapped Job":       wrappedShape(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":POD}}`),
	"wrapped Ray":       wrappedShape(`{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"r"},"spec":{"headGroupSpec":{"template":POD}}}`),
	"wrapped JobSet":    wrappedShape(`{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"j"},"spec":{"replicatedJobs":[{"name":"w","template":{"metadata":{},"spec":{"template":POD}}}]}}`),
	"wrapped and unknown": `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"name":"a"},"spec":{"components":[
		{"podSets":[{"path":"template.spec.worker"}],"template":{"apiVersion":"x.io/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"worker":POD}}}]}}`,
	"wrapped in v1beta1": `{"apiVersion":"workload.codeflare.dev/v1beta1","kind":"AppWrapper","metadata":{"name":"a"},"spec":{"resources":{"GenericItems":[
		{"generictemplate":{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":POD}}}]}}}`,
	"pod sets": `{"apiVersion":"muster.dev/v1","kind":"PodSets","metadata":{"name":"a"},"spec":{"podSets":[{"name":"p","count":1,"template":POD}]}}`,
}

func wrappedShape(object string) string {
	return `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"name":"a"},"spec":{"components":[{"template":` + object + `}]}}`
}

// TestNamesInPodTemplates: Read refuses every name in a pod template that the API server
// would refuse in a pod, in every template of every kind, and accepts the others. The
// HTTP API and the Kubernetes controller read templates with the same code.
func TestNamesInPodTemplates(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3000)
	const escape = `\u001b[2J`
	faults := map[string][2]string{ // what is replaced in podOf, and by what
		"":                       {"", ""},
		"key of a label":         {`"a.b/c"`, `"a b"`},
		"value of a label":       {`"d"`, `"` + escape + `"`},
		"long value of a label":  {`"d"`, `"` + long + `"`},
		"a number as label":      {`"d"`, `7`},
		"key of an annotation":   {`"note"`, `"no\nte"`},
		"long annotations":       {`"any\ntext"}},`, `"` + strings.Repeat("x", 270<<10) + `"}},`},
		"container":              {`"main"`, `"Main"`},
		"long container":         {`"main"`, `"` + long + `"`},
		"init container":         {`"prepare"`, `"a_b"`},
		"port":                   {`{"name": "dashboard", "containerPort": 8265}`, `{"name": "dashboard", "containerPort": 8265}, {"name": "far-too-long-for-a-port", "containerPort": 9}`},
		"variable":               {`"A.b-C_1"`, `"A=B"`},
		"escape in a variable":   {`"A.b-C_1"`, `"` + escape + `"`},
		"long variable":          {`"A.b-C_1"`, `"` + long + `"`},
		"empty variable":         {`"A.b-C_1"`, `""`},
		"key of a variable":      {`"the.key"`, `"the/key"`},
		"secret of a variable":   {`{"name": "keys", "key"`, `{"name": "../keys", "key"`},
		"map of a variable":      {`"others"`, `"O thers"`},
		"prefix":                 {`"P_"`, `"P=` + `"`},
		"map of variables":       {`"more"`, `"M/ore"`},
		"secret of variables":    {`"most"`, `"` + escape + `"`},
		"volume":                 {`{"name": "data", "emptyDir"`, `{"name": "Da_ta", "emptyDir"`},
		"a volume twice":         {`{"name": "map", "configMap"`, `{"name": "claim", "configMap"`},
		"claim":                  {`"claimName": "claim"`, `"claimName": "c/laim"`},
		"map of a volume":        {`"configMap": {"name": "map", "items"`, `"configMap": {"name": "M ap", "items"`},
		"key of a volume":        {`"key": "k"`, `"key": "k/k"`},
		"secret of a volume":     {`"secretName": "keys"`, `"secretName": "` + escape + `"`},
		"secret of a projection": {`{"secret": {"name": "keys"}}`, `{"secret": {"name": "K eys"}}`},
		"mount": {`"volumeMounts": [{"name": "data", "mountPath": "/data"}]
		}]`, `"volumeMounts": [{"name": "` + escape + `", "mountPath": "/data"}]
		}]`},
		"key of a selector":         {`"zone"`, `"zo ne"`},
		"key of a toleration":       {`"gpu"`, `"` + escape + `"`},
		"long toleration":           {`{"key": "gpu", "operator": "Exists"}`, `{"key": "gpu", "operator": "Equal", "value": "` + long + `"}`},
		"hostname":                  {`"host"`, `"ho.st"`},
		"subdomain":                 {`"sub"`, `"S ub"`},
		"service account":           {`"default"`, `"de/fault"`},
		"priority class":            {`"high"`, `"` + long + `"`},
		"secret to pull with":       {`"pull"`, `"` + escape + `"`},
		"gate of readiness":         {`"a.b/ready"`, `"a b"`},
		"name of the pod":           {`"metadata": {`, `"metadata": {"name": "` + escape + `",`},
		"generated name of the pod": {`"metadata": {`, `"metadata": {"generateName": "` + long + `",`},
		"namespace of the pod":      {`"metadata": {`, `"metadata": {"namespace": "` + escape + `",`},
	}
	for shape, document := range shapes {
		for name, change := range faults {
			t.Run(shape+"/"+name, func(t *testing.T) {
				t.Parallel()
				pod := strings.Replace(podOf, change[0], change[1], 1)
				if name != "" && pod == podOf {
					t.Fatal("nothing was changed")
				}
				manifest := strings.NewReplacer("POD", pod, "GOOD", podOf).Replace(document)
				if !json.Valid([]byte(manifest)) {
					t.Fatal("the manifest is not JSON")
				}
				result, err := Read(ray.Shipped(), binary(manifest))
				if err != nil {
					t.Fatal(err)
				}
				if refused := result.Rejection != nil; refused != (name != "") {
					t.Errorf("rejection %v", result.Rejection)
				}
				if result.Rejection != nil && (len(result.Rejection.Message) > 1000 || strings.ContainsAny(result.Rejection.Message, "\x1b\n")) {
					t.Errorf("the rejection repeats what it refuses, with %d bytes", len(result.Rejection.Message))
				}
			})
		}
	}
}
