package policywebhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"muster.dev/muster/deploy/policy"
	"muster.dev/muster/services/intake/internal/policywebhook"
)

// nothing is an authorizer that allows nothing.
var nothing = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", nil
})

func newHandler(t testing.TB, limits policywebhook.Limits) *policywebhook.Handler {
	t.Helper()
	policies, err := policywebhook.Compile(policy.Settings{KueueLabel: true, Moving: []string{"moving"}}.Documents())
	if err != nil {
		t.Fatal(err)
	}
	return &policywebhook.Handler{Policies: policies, Authorizer: nothing, Limits: limits, Logger: zaptest.NewLogger(t)}
}

// review is one of a user's creation.
func review(object string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"n","name":"x",
		"kind":{"group":"ray.io","version":"v1","kind":"RayCluster"},"resource":{"group":"ray.io","version":"v1","resource":"rayclusters"},
		"userInfo":{"username":"alice","groups":["a","b"]},"object":%s}}`, object)
}

const rayCluster = `{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"x","labels":{"muster.dev/queue-name":"q"}},"spec":{"headGroupSpec":{}}}`

func post(h http.Handler, path, body string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return answer
}

// TestReview: a review gets the answer of the policy that its path names.
func TestReview(t *testing.T) {
	t.Parallel()
	h := newHandler(t, policywebhook.DefaultLimits())
	for name, test := range map[string]struct {
		policy, object, patch, want string
	}{
		"suspended": {"hold", rayCluster, `[{"op":"add","path":"/spec/suspend","value":true}]`, ""},
		"moving": {
			"hold", strings.ReplaceAll(rayCluster, `"q"`, `"moving"`),
			`[{"op":"add","path":"/spec/managedBy","value":"kueue.x-k8s.io/multikueue"},{"op":"add","path":"/spec/suspend","value":true}]`, "",
		},
		"moving, managed by another": {
			"holdable", strings.ReplaceAll(strings.ReplaceAll(rayCluster, `"q"`, `"moving"`), `"spec":{`, `"spec":{"managedBy":"kueue.x-k8s.io/multikueue",`), "", "",
		},
		"of a queue that waits, managed by another": {
			"holdable", strings.ReplaceAll(rayCluster, `"spec":{`, `"spec":{"managedBy":"kueue.x-k8s.io/multikueue",`), "", "spec.managedBy: names another manager",
		},
		"without a queue": {"hold", strings.ReplaceAll(rayCluster, "queue-name", "other"), "", ""},
		"stamped": {
			"ray-user", rayCluster,
			`[{"op":"add","path":"/metadata/annotations","value":{"muster.dev/user":"alice","muster.dev/user-groups":"a\nb","muster.dev/user-uid":""}}]`, "",
		},
		"refused":  {"holdable", strings.ReplaceAll(rayCluster, `"spec":{`, `"spec":{"managedBy":"me",`), "", "spec.managedBy: names another manager"},
		"no error": {"held", rayCluster, "", "no such key"}, // of an update alone; what cannot be evaluated is refused
	} {
		t.Run(name, func(t *testing.T) {
			answer := post(h, policy.Path+test.policy, review(test.object))
			var got admissionv1.AdmissionReview
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
				t.Fatalf("%s: %v: %s", name, err, answer.Body)
			}
			r := got.Response
			if got.Kind != "AdmissionReview" || r == nil || r.UID != "u" || r.Allowed != (test.want == "") || string(r.Patch) != test.patch {
				t.Errorf("%s: answer is %s, with patch %s", name, answer.Body, r.Patch)
			}
			if test.want != "" && (r.Result == nil || !strings.Contains(r.Result.Message, test.want) || r.Result.Code != http.StatusUnprocessableEntity) {
				t.Errorf("%s: it says %+v, want %q", name, r.Result, test.want)
			}
		})
	}
}

// TestFinalizersAreAddedWhereTheDispatcherMayRelease: the policies that hold an object add
// Muster's finalizer to it, once and beside those of others, in the namespaces where the
// dispatcher's account may patch RayClusters.
func TestFinalizersAreAddedWhereTheDispatcherMayRelease(t *testing.T) {
	t.Parallel()
	const wrapper = `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"name":"x"},"spec":{"components":[]}}`
	with := func(object, finalizers string) string {
		return strings.Replace(object, `"metadata":{`, `"metadata":{"finalizers":[`+finalizers+`],`, 1)
	}
	for name, test := range map[string]struct {
		policy, object, account string // that may patch RayClusters in namespace n
		want                    string
	}{
		"labelled":            {"hold", rayCluster, "muster-dispatcher", `{"op":"add","path":"/metadata/finalizers","value":["muster.dev/workload"]}`},
		"beside another":      {"hold", with(rayCluster, `"a/b"`), "muster-dispatcher", `{"op":"replace","path":"/metadata/finalizers","value":["a/b","muster.dev/workload"]}`},
		"has it":              {"hold", with(rayCluster, `"muster.dev/workload"`), "muster-dispatcher", ""},
		"no queue's":          {"hold", rayCluster, "another", ""},
		"AppWrapper":          {"appwrapper-user", wrapper, "muster-dispatcher", `{"op":"add","path":"/metadata/finalizers","value":["muster.dev/workload"]}`},
		"no queue's, wrapper": {"appwrapper-user", wrapper, "another", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHandler(t, policywebhook.DefaultLimits())
			h.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if a.GetUser().GetName() == "system:serviceaccount:muster-system:"+test.account && a.GetVerb() == "patch" && a.GetNamespace() == "n" &&
					a.GetAPIGroup() == "ray.io" && a.GetResource() == "rayclusters" {
					return authorizer.DecisionAllow, "", nil
				}
				return authorizer.DecisionNoOpinion, "", nil
			})
			var got admissionv1.AdmissionReview
			answer := post(h, policy.Path+test.policy, review(test.object))
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || got.Response == nil || !got.Response.Allowed {
				t.Fatalf("answer is %s, %v", answer.Body, err)
			}
			patch := string(got.Response.Patch)
			if strings.Contains(patch, "finalizers") != (test.want != "") || !strings.Contains(patch, test.want) {
				t.Errorf("the patch is %s, want %q in it", patch, test.want)
			}
		})
	}
}

// TestAnObjectThatNothingReleasesIsRefused: an object with a queue in a namespace where the
// dispatcher may not release it is refused, where its account is known to be the dispatcher's.
func TestAnObjectThatNothingReleasesIsRefused(t *testing.T) {
	t.Parallel()
	const watches, releases = "watch  rayclusters", "patch n rayclusters"
	for name, test := range map[string]struct {
		object string
		rights []string // of the dispatcher's account
		want   string
	}{
		"a queue's namespace":       {rayCluster, []string{watches, releases}, ""},
		"another namespace":         {rayCluster, []string{watches}, "metadata.namespace: Muster serves no queue in this namespace"},
		"another, without a queue":  {strings.ReplaceAll(rayCluster, "queue-name", "other"), []string{watches}, ""},
		"the account is not in use": {rayCluster, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHandler(t, policywebhook.DefaultLimits())
			h.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				right := fmt.Sprintf("%s %s %s", a.GetVerb(), a.GetNamespace(), a.GetResource())
				if a.GetUser().GetName() == "system:serviceaccount:muster-system:muster-dispatcher" && slices.Contains(test.rights, right) {
					return authorizer.DecisionAllow, "", nil
				}
				return authorizer.DecisionNoOpinion, "", nil
			})
			var got admissionv1.AdmissionReview
			answer := post(h, policy.Path+"holdable", review(test.object))
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || got.Response == nil {
				t.Fatalf("answer is %s, %v", answer.Body, err)
			}
			if r := got.Response; r.Allowed != (test.want == "") || test.want != "" && !strings.Contains(r.Result.Message, test.want) {
				t.Errorf("answer is %+v, want %q", r, test.want)
			}
		})
	}
}

// TestUpdates: the spec of an object that waits in its queue stays; labels may change.
func TestUpdates(t *testing.T) {
	t.Parallel()
	h := newHandler(t, policywebhook.DefaultLimits())
	waits := strings.Replace(rayCluster, `"spec":{`, `"spec":{"suspend":true,`, 1)
	for name, test := range map[string]struct{ object, want string }{
		"another size":  {strings.Replace(waits, `"headGroupSpec":{}`, `"headGroupSpec":{"a":"b"}`, 1), "counts as it was created"},
		"another label": {strings.Replace(waits, `"labels":{`, `"labels":{"team":"blue",`, 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			body := strings.Replace(review(test.object), `"CREATE"`, `"UPDATE","oldObject":`+waits, 1)
			var got admissionv1.AdmissionReview
			if answer := post(h, policy.Path+"held", body); json.Unmarshal(answer.Body.Bytes(), &got) != nil || got.Response == nil {
				t.Fatalf("%s: answer is %s", name, answer.Body)
			}
			if r := got.Response; r.Allowed != (test.want == "") || test.want != "" && !strings.Contains(r.Result.Message, test.want) {
				t.Errorf("%s: answer is %+v, want %q", name, r, test.want)
			}
		})
	}
}

// TestBounds: what is not a review of bounded size and depth gets an error and no verdict.
func TestBounds(t *testing.T) {
	t.Parallel()
	limits := policywebhook.DefaultLimits()
	limits.Bytes = 1 << 16
	h := newHandler(t, limits)
	for name, test := range map[string]struct {
		path, body string
		code       int
	}{
		"another path": {policy.Path + "none", review(rayCluster), http.StatusNotFound},
		"no JSON":      {policy.Path + "hold", "{", http.StatusBadRequest},
		"nothing":      {policy.Path + "hold", "", http.StatusBadRequest},
		"no review":    {policy.Path + "hold", rayCluster, http.StatusBadRequest},
		"no request":   {policy.Path + "hold", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, http.StatusBadRequest},
		"too large":    {policy.Path + "hold", review(`{"a":"` + strings.Repeat("a", 1<<16) + `"}`), http.StatusRequestEntityTooLarge},
		"too deep":     {policy.Path + "hold", review(strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			if answer := post(h, test.path, test.body); answer.Code != test.code {
				t.Errorf("%s: %d %s, want %d", name, answer.Code, answer.Body, test.code)
			}
		})
	}
}

// TestOneAddressLeavesRoomForOthers: an address that sends reviews without an end has a
// bounded part of the slots, and keeps them for a bounded time.
func TestOneAddressLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	limits := policywebhook.Limits{Bytes: 1 << 20, Depth: 128, Time: time.Minute, Reviews: 3, PerAddress: 2}
	h := newHandler(t, limits)
	var writers []*io.PipeWriter
	ended := make(chan int, limits.PerAddress)
	for range limits.PerAddress {
		body, writer := io.Pipe()
		writers = append(writers, writer)
		request := httptest.NewRequest(http.MethodPost, policy.Path+"hold", body)
		go func() {
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, request)
			ended <- answer.Code
		}()
		if _, err := writer.Write([]byte("{")); err != nil { // it is read, so it has its slot
			t.Fatal(err)
		}
	}
	if answer := post(h, policy.Path+"hold", review(rayCluster)); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("one more of the address: %d %s", answer.Code, answer.Body)
	}
	other := httptest.NewRequest(http.MethodPost, policy.Path+"hold", strings.NewReader(review(rayCluster)))
	other.RemoteAddr = "10.0.0.9:1"
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, other)
	if answer.Code != http.StatusOK {
		t.Errorf("another address: %d %s", answer.Code, answer.Body)
	}
	for _, writer := range writers {
		writer.Close()
		if code := <-ended; code != http.StatusBadRequest {
			t.Errorf("an unfinished review ends with %d", code)
		}
	}
	if answer := post(h, policy.Path+"hold", review(rayCluster)); answer.Code != http.StatusOK {
		t.Errorf("afterwards: %d %s", answer.Code, answer.Body)
	}
}

// TestCompileRefuses: a policy that the webhooks cannot give the verdicts of is refused at the
// start, with its name.
func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"a wrong expression":   {"object.spec == oldObject.spec", "object.spec =="},
		"a message expression": {"message: 'the spec of", "messageExpression: 'the spec of"},
		"an unknown field":     {"failurePolicy: Fail", "failPolicy: Fail"},
	} {
		t.Run(name, func(t *testing.T) {
			var documents [][]byte
			for _, document := range policy.Documents(false) {
				documents = append(documents, bytes.ReplaceAll(document, []byte(change[0]), []byte(change[1])))
			}
			if _, err := policywebhook.Compile(documents); err == nil || !strings.Contains(err.Error(), "policy muster-") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// FuzzReview: no review ends the process, and an answer is one of the policy or an error.
func FuzzReview(f *testing.F) {
	f.Add("hold", review(rayCluster))
	f.Add("fixed-ray", strings.ReplaceAll(review(rayCluster), "CREATE", "UPDATE"))
	f.Add("fixed-amounts", review(`{"spec":{"workerGroupSpecs":[1,null,{"template":[]}]}}`))
	h := newHandler(f, policywebhook.DefaultLimits())
	f.Fuzz(func(t *testing.T, name, body string) {
		if strings.ContainsAny(name, " \x00\r\n%?#") {
			return
		}
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		request.URL.Path = policy.Path + name
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, request)
		if answer.Code == http.StatusInternalServerError {
			t.Errorf("the review failed: %s", answer.Body)
		}
	})
}
