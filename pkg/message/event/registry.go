package event

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
)

// prototypes returns a zero value of every payload; the registry of types.
// Submit is not among them: its data is a manifest, not a JSON payload.
func prototypes() []Payload {
	return []Payload{
		&WorkloadSubmitted{}, &WorkloadRejected{}, &WorkloadChanged{}, &WorkloadCancel{}, &WorkloadRelease{}, &WorkloadMove{},
		&WorkloadHold{}, &WorkloadRequeue{}, &WorkloadPriority{}, &WorkloadCheckpoint{}, &RequestWaits{},
		&NodeObserved{}, &NodeRemoved{}, &NamespaceObserved{}, &CapacitySynced{}, &GangObserved{},
		&GangCommand{}, &GangStatus{}, &PermissionAsked{}, &PermissionGranted{}, &ReportWanted{}, &CheckWanted{}, &CheckAnswer{}, &DemandChanged{}, &BudgetUsedUp{}, &ClusterChanged{},
	}
}

// registry has the Go type of each payload by its type string. It is made once: each message that
// is read is looked up there.
var registry = sync.OnceValue(func() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, prototype := range prototypes() {
		types[prototype.EventType()] = reflect.TypeOf(prototype).Elem()
	}
	return types
})

// Types lists the type strings that Decode knows, sorted.
func Types() []string { return slices.Sorted(maps.Keys(registry())) }

// Decode returns the payload of the envelope as a pointer to its Go type. Errors
// wrap ErrUnknownType or ErrMalformed. It refuses data that is nested too deep or has too many
// values before it decodes it.
func Decode(e Envelope) (Payload, error) {
	of, known := registry()[e.Type]
	if !known {
		return nil, fmt.Errorf("%w %q in event %q", ErrUnknownType, e.Type, e.ID)
	}
	payload := reflect.New(of).Interface().(Payload)
	if err := boundsOf(payload).Check(e.Data); err != nil {
		return nil, fmt.Errorf("%w: data of %s event %.200q %w", ErrMalformed, e.Type, e.ID, err)
	}
	if err := json.Unmarshal(e.Data, payload); err != nil {
		return nil, fmt.Errorf("%w: data of %s event %q: %w", ErrMalformed, e.Type, e.ID, err)
	}
	return payload, nil
}
