package workload

import (
	"reflect"
	"testing"
	"time"
)

// A time that MapTimes leaves out is stored in microseconds and compared in nanoseconds:
// replays then differ from what was recorded.
func TestMapTimesReachesEachTimeOfARecord(t *testing.T) {
	t.Parallel()
	var r Record
	mapped := time.Unix(1, 0)
	r.MapTimes(func(time.Time) time.Time { return mapped })
	times := 0
	var visit func(path string, v reflect.Value)
	visit = func(path string, v reflect.Value) {
		if at, is := v.Interface().(time.Time); is {
			if times++; !at.Equal(mapped) {
				t.Errorf("%s is not mapped", path)
			}
			return
		}
		if v.Kind() != reflect.Struct {
			return
		}
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				visit(path+"."+field.Name, v.Field(i))
			}
		}
	}
	visit("Record", reflect.ValueOf(r))
	if times < 7 {
		t.Errorf("found %d times in a record, want at least the 7 that it has", times)
	}
}
