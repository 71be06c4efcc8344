package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestLogin(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 1)
	b := newBrowser(t, a, "", true)
	if status, header, _ := b.get("/workloads?phase=queued"); status != http.StatusSeeOther || header.Get("Location") != "/login?to=%2Fworkloads%3Fphase%3Dqueued" {
		t.Errorf("without a session: status %d, to %q", status, header.Get("Location"))
	}
	if status, _, _ := b.get("/live/workloads"); status != http.StatusUnauthorized {
		t.Errorf("updates without a session: status %d", status)
	}
	if status, _, content := b.post("/login", url.Values{"token": {"mallory"}}); status != http.StatusUnauthorized || !strings.Contains(content, "does not accept this token") {
		t.Errorf("a token that is unknown: status %d: %s", status, content)
	}
	status, header, _ := b.post("/login", url.Values{"token": {"olga"}, "to": {"//elsewhere.example"}})
	if cookie := header.Get("Set-Cookie"); status != http.StatusSeeOther || header.Get("Location") != "/" || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") || strings.Contains(cookie, "olga") {
		t.Errorf("login: status %d, to %q, cookie %q", status, header.Get("Location"), cookie)
	}
	if status, _, _ := b.get("/queues"); status != http.StatusOK {
		t.Errorf("logged in: status %d", status)
	}
	a.set(func() { a.revoked = true })
	if status, header, _ := b.get("/workloads"); status != http.StatusSeeOther || !strings.HasPrefix(header.Get("Location"), "/login") {
		t.Errorf("with a token that was withdrawn: status %d, to %q", status, header.Get("Location"))
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, newAPI(1, 1), "olga", true)
	form := b.form()
	if status, _, _ := b.post("/logout", nil); status != http.StatusForbidden {
		t.Errorf("a logout of another site: status %d", status)
	}
	if status, _, _ := b.post("/logout", url.Values{"form": {form}}); status != http.StatusSeeOther {
		t.Errorf("logout: status %d", status)
	}
	if status, _, _ := b.get("/queues"); status != http.StatusSeeOther {
		t.Errorf("after it: status %d", status)
	}
}

func TestOwn(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"": "/", "/workloads?phase=queued": "/workloads?phase=queued", "//a.example": "/", "https://a.example/": "/", `/\a.example`: "/", "javascript:alert(1)": "/", "workloads": "/",
	} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			if got := own(to); got != want {
				t.Errorf("own(%q) = %q, want %q", to, got, want)
			}
		})
	}
}
