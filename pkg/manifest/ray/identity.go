package ray

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/fault"
)

// longestName is KubeRay's limit on the name of each kind; what it names after
// them must be a label, too.
var longestName = map[string]int{RayCluster: 53, RayJob: 47, RayService: 47, RayCronJob: 36}

// identify reads what the object calls itself.
func identify(v *verdict, tree map[string]any) (Object, error) {
	var o Object
	var err error
	if o.Kind, err = textOf(tree, "kind", "kind"); err != nil {
		return o, err
	}
	if o.APIVersion, err = textOf(tree, "apiVersion", "apiVersion"); err != nil {
		return o, err
	}
	if _, known := longestName[o.Kind]; !known {
		return o, refuse("kind", "is "+fault.Quote(o.Kind), "want RayCluster, RayJob or RayService")
	}
	if o.APIVersion != GroupVersion && o.APIVersion != oldVersion {
		return o, refuse("apiVersion", "is "+fault.Quote(o.APIVersion), "want "+GroupVersion)
	}
	metadata, isObject := tree["metadata"].(map[string]any)
	if !isObject {
		return o, refuse("metadata", "is "+describe(tree["metadata"]), "want an object with name or generateName")
	}
	for field, into := range map[string]*string{"namespace": &o.Namespace, "name": &o.Name, "generateName": &o.GenerateName} {
		if *into, err = textOf(metadata, field, "metadata."+field); err != nil {
			return o, err
		}
	}
	if _, isObject := tree["spec"].(map[string]any); !isObject {
		return o, refuse("spec", "is "+describe(tree["spec"]), "want an object with what to run")
	}
	if err := checkNames(o); err != nil {
		return o, err
	}
	if where, what, why := kube.BadLabels(metadata); why != "" {
		return o, refuse("metadata."+where, what, why)
	}
	if o.Life, err = readLife(metadata); err != nil {
		return o, err
	}
	if o.Life.IdleTime > 0 && o.Kind != RayCluster {
		return o, refuse(annotationPath(kube.IdleTimeKey), "is set", "remove it: a "+o.Kind+" ends by itself or runs; idle is a RayCluster")
	}
	checkOwnership(v, metadata)
	return o, nil
}

func textOf(object map[string]any, field, where string) (string, error) {
	switch value := object[field].(type) {
	case nil:
		return "", nil
	case string:
		return value, nil
	default:
		return "", refuse(where, "is "+describe(value), "want a text")
	}
}

func checkNames(o Object) error {
	if o.Namespace != "" {
		if faults := validation.IsDNS1123Label(o.Namespace); len(faults) > 0 {
			return refuse("metadata.namespace", fault.Quote(o.Namespace)+" cannot be the name of a namespace", faults[0])
		}
	}
	where, name, limit := "metadata.name", o.Name, longestName[o.Kind]
	if name == "" {
		if o.GenerateName == "" {
			return refuse("metadata.name", "is missing, and so is generateName", "set one of them")
		}
		where, name, limit = "metadata.generateName", o.GenerateName, limit-suffixLength
	}
	if len(name) > limit {
		return refuse(where, fmt.Sprintf("%s has %d characters", fault.Quote(name), len(name)),
			fmt.Sprintf("KubeRay allows at most %d for a %s", limit, o.Kind))
	}
	// What follows a generateName is letters and digits.
	if where == "metadata.generateName" {
		name += "x"
	}
	if faults := validation.IsDNS1035Label(name); len(faults) > 0 {
		return refuse(where, fault.Quote(strings.TrimSuffix(name, "x"))+" cannot be the name of a "+o.Kind, faults[0])
	}
	return nil
}

// checkOwnership refuses what would let another party delete the object, or keep
// Muster from deleting it.
func checkOwnership(v *verdict, metadata map[string]any) {
	for _, field := range []string{"ownerReferences", "finalizers"} {
		if list, isList := metadata[field].([]any); isList && len(list) > 0 {
			v.refuse("metadata."+field, "is set",
				"remove it: Muster alone decides how long the object lives")
		}
	}
}

// child returns the object in a field, which is created when it is missing.
func child(parent map[string]any, field string) (map[string]any, error) {
	switch value := parent[field].(type) {
	case map[string]any:
		return value, nil
	case nil:
		created := map[string]any{}
		parent[field] = created
		return created, nil
	default:
		return nil, refuse(field, "is "+describe(value), "want an object")
	}
}
