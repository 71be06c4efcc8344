package crds

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// storagePrefix is where the API server keeps definitions in etcd.
const storagePrefix = "/registry/apiextensions.k8s.io/customresourcedefinitions/"

// Stored returns the definitions, and those of others, as the API server stores them in
// etcd, by key, accepted and established as of now.
//
// An API server that finds them when it starts serves them at once. Creating
// them through its API instead takes it 5 seconds of computing, because each
// step of their acceptance encodes and compares megabytes of schema.
func Stored(now time.Time, others map[string]json.RawMessage) (map[string][]byte, error) {
	definitions, err := Load()
	if err != nil {
		return nil, err
	}
	maps.Copy(definitions, others)
	stored := make(map[string][]byte, len(definitions))
	for name, data := range definitions {
		var crd map[string]json.RawMessage
		if err := json.Unmarshal(data, &crd); err != nil {
			return nil, fmt.Errorf("decoding the definition %q: %w", name, err)
		}
		if err := establish(crd, now); err != nil {
			return nil, fmt.Errorf("establishing the definition %q: %w", name, err)
		}
		value, err := json.Marshal(crd)
		if err != nil {
			return nil, fmt.Errorf("encoding the definition %q: %w", name, err)
		}
		stored[storagePrefix+name] = value
	}
	return stored, nil
}

// establish fills in what the API server adds to a definition. The schemas, the
// bulk of it, are passed through unread.
func establish(crd map[string]json.RawMessage, now time.Time) error {
	var meta metav1.ObjectMeta
	if err := json.Unmarshal(crd["metadata"], &meta); err != nil {
		return err
	}
	meta.UID = uuid.NewUUID()
	meta.Generation = 1
	meta.CreationTimestamp = metav1.NewTime(now)

	var spec struct {
		Names    apiextensionsv1.CustomResourceDefinitionNames `json:"names"`
		Versions []struct {
			Name    string `json:"name"`
			Storage bool   `json:"storage"`
		} `json:"versions"`
	}
	if err := json.Unmarshal(crd["spec"], &spec); err != nil {
		return err
	}
	status := apiextensionsv1.CustomResourceDefinitionStatus{AcceptedNames: spec.Names}
	for _, version := range spec.Versions {
		if version.Storage {
			status.StoredVersions = []string{version.Name}
		}
	}
	for _, c := range []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Reason: "NoConflicts", Message: "no conflicts found"},
		{Type: apiextensionsv1.Established, Reason: "InitialNamesAccepted", Message: "the initial names have been accepted"},
	} {
		c.Status, c.LastTransitionTime = apiextensionsv1.ConditionTrue, metav1.NewTime(now)
		status.Conditions = append(status.Conditions, c)
	}
	var err error
	if crd["metadata"], err = json.Marshal(meta); err != nil {
		return err
	}
	crd["status"], err = json.Marshal(status)
	return err
}
