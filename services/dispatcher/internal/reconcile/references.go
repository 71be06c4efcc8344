package reconcile

import "muster.dev/muster/pkg/spec/workload"

// reference is an object to which pods refer.
type reference struct{ kind, name string }

// collectReferences finds the ConfigMaps and Secrets to which pods of a manifest refer, and maybe
// some to which they do not: of all of them the queue names those that are copied.
func collectReferences(value any, into map[reference]bool) {
	switch v := value.(type) {
	case []any:
		for _, inner := range v {
			collectReferences(inner, into)
		}
	case map[string]any:
		for key, inner := range v {
			switch key {
			case "configMap", "configMapRef", "configMapKeyRef":
				noteReference(inner, workload.KindConfigMap, "name", into)
			case "secretRef", "secretKeyRef":
				noteReference(inner, workload.KindSecret, "name", into)
			case "secret": // of a volume, or of a source of a projected one
				noteReference(inner, workload.KindSecret, "secretName", into)
				noteReference(inner, workload.KindSecret, "name", into)
			case "imagePullSecrets":
				list, _ := inner.([]any)
				for _, one := range list {
					noteReference(one, workload.KindSecret, "name", into)
				}
			}
			collectReferences(inner, into)
		}
	}
}

func noteReference(value any, kind, field string, into map[reference]bool) {
	object, _ := value.(map[string]any)
	if name, _ := object[field].(string); name != "" {
		into[reference{kind, name}] = true
	}
}
