package web

import (
	"crypto/rand"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// mostOpenLogins bounds logins that browsers have begun at the provider, and mostOpenOfAddress
// those of one address.
const mostOpenLogins, mostOpenOfAddress = 4096, 64

// openOfAddress is the bound of one address, which behind a proxy is that of all browsers.
func openOfAddress(proxied bool) int {
	if proxied {
		return mostOpenLogins
	}
	return mostOpenOfAddress
}

// openLogin is a login that the provider has not sent back yet.
type openLogin struct {
	state, nonce, verifier, to string
	address                    string
	until                      time.Time
}

// openLogins are those of all browsers. Its methods may be called concurrently.
type openLogins struct {
	now  func() time.Time
	each int // of an address

	mu       sync.Mutex
	byCookie map[string]openLogin
}

func newOpenLogins(each int, now func() time.Time) *openLogins {
	return &openLogins{now: now, each: each, byCookie: map[string]openLogin{}}
}

// begin notes a login and returns its cookie. At a bound the oldest login gives way: of the
// address at its own bound, so that one address does not end the logins of others.
func (o *openLogins) begin(address, to string) (cookie string, login openLogin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	for key, l := range o.byCookie {
		if now.After(l.until) {
			delete(o.byCookie, key)
		}
	}
	o.evict(o.each, func(l openLogin) bool { return l.address == address })
	o.evict(mostOpenLogins, func(openLogin) bool { return true })
	cookie = rand.Text()
	login = openLogin{
		state: rand.Text(), nonce: rand.Text(), verifier: oauth2.GenerateVerifier(), to: to,
		address: address, until: now.Add(loginMost),
	}
	o.byCookie[cookie] = login
	return cookie, login
}

// evict drops the oldest of some logins when there are as many as most.
func (o *openLogins) evict(most int, of func(openLogin) bool) {
	count, oldest := 0, ""
	for key, l := range o.byCookie {
		if !of(l) {
			continue
		}
		if count == 0 || l.until.Before(o.byCookie[oldest].until) {
			oldest = key
		}
		count++
	}
	if count >= most {
		delete(o.byCookie, oldest)
	}
}

// drop forgets the open login of a cookie.
func (o *openLogins) drop(cookie string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byCookie, cookie)
}

// consume returns the open login of a cookie, once.
func (o *openLogins) consume(cookie, state string) (openLogin, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	login, known := o.byCookie[cookie]
	delete(o.byCookie, cookie)
	return login, known && login.state == state && !o.now().After(login.until)
}
