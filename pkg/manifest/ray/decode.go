package ray

import (
	"errors"
	"math"
	"regexp"
	"strings"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	rayv1alpha1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1alpha1"
	sigsjson "sigs.k8s.io/json"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/fault"
)

// decode fills the Go type of the manifest. A field that KubeRay v1.6.2 does not
// know is refused: it may change which pods are created.
func decode(tree map[string]any, into any) error {
	return decodeStrictly(tree, into, "is no field of KubeRay v1.6.2", "correct its name or place, or remove it")
}

// checkOldVersion refuses fields that ray.io/v1alpha1 lacks: the API server drops
// them, numOfHosts among them, where Muster, which creates v1, would not.
func checkOldVersion(kind string, tree map[string]any) error {
	var into any
	switch kind {
	case RayCluster:
		into = &rayv1alpha1.RayCluster{}
	case RayJob:
		into = &rayv1alpha1.RayJob{}
	case RayService:
		into = &rayv1alpha1.RayService{}
	default:
		return refuse("apiVersion", "is "+fault.Quote(oldVersion)+", which has no "+kind, "want "+GroupVersion)
	}
	return decodeStrictly(tree, into, "is no field of "+oldVersion, "set apiVersion: "+GroupVersion+", or correct its name or place")
}

func decodeStrictly(tree map[string]any, into any, what, remedy string) error {
	unknown, err := kube.DecodeStrictly("", tree, into)
	if err != nil {
		return mismatch(tree, err)
	}
	var fields []string
	for _, fault := range unknown {
		var field sigsjson.FieldError
		if errors.As(fault, &field) {
			fields = append(fields, field.FieldPath())
		}
	}
	if len(fields) == 0 {
		return nil
	}
	const shown = 3
	if len(fields) > 1 {
		others := fields[1:min(len(fields), shown)]
		what += ", neither is " + fault.Clip(strings.Join(others, ", "))
		if len(fields) > shown {
			what += ", and more"
		}
	}
	return refuse(fault.Clip(fields[0]), what, remedy)
}

var mismatchText = regexp.MustCompile(`cannot unmarshal (.+) into Go struct field \w+\.(\S+) of type (\S+)`)

// mismatch words an error of the decoder as the other refusals are.
func mismatch(tree map[string]any, err error) error {
	if refused := ofQuantity(err); refused != nil {
		return refused
	}
	parts := mismatchText.FindStringSubmatch(err.Error())
	if parts == nil {
		return refuse("manifest", "does not decode: "+fault.Clip(err.Error()), "correct the field")
	}
	wanted := map[string]string{
		"int32": "a whole number of 32 bits", "int64": "a whole number", "string": "a text", "bool": "true or false",
	}[strings.TrimPrefix(parts[3], "*")]
	switch {
	case wanted != "":
	case strings.HasPrefix(parts[3], "[]"):
		wanted = "a list"
	default:
		wanted = "an object"
	}
	where, is := locate(tree, parts[2], parts[1])
	return refuse(fault.Clip(where), "is "+is, "want "+wanted)
}

// setDefaults fills in what the API server would, from the schema of the custom
// resource. The tree distinguishes a missing number from a zero.
func setDefaults(spec *rayv1.RayClusterSpec, tree map[string]any) {
	groups, _ := tree["workerGroupSpecs"].([]any)
	for i := range spec.WorkerGroupSpecs {
		g := &spec.WorkerGroupSpecs[i]
		for _, number := range []struct {
			field **int32
			value int32
		}{{&g.Replicas, 0}, {&g.MinReplicas, 0}, {&g.MaxReplicas, math.MaxInt32}} {
			if *number.field == nil {
				*number.field = &number.value
			}
		}
		if group, ok := groups[i].(map[string]any); ok && group["numOfHosts"] == nil {
			g.NumOfHosts = 1
		}
	}
}
