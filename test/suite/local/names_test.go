package local

import (
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// TestNamesAreAnsweredOrRefused: a server of an installation is this machine, other names do
// not exist, and a DNS server that refuses says of every name that it has failed.
func TestNamesAreAnsweredOrRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asked   string
		refuses bool
		code    dnsmessage.RCode
		answers int
	}{
		"a server":                       {"nats-1" + domain + ".", false, dnsmessage.RCodeSuccess, 1},
		"another name":                   {"example.org.", false, dnsmessage.RCodeNameError, 0},
		"a server, of a DNS that fails":  {"nats-1" + domain + ".", true, dnsmessage.RCodeServerFailure, 0},
		"another name, of one that does": {"example.org.", true, dnsmessage.RCodeServerFailure, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			question := dnsmessage.Message{
				Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
				Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(c.asked), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
			}
			packed, err := question.Pack()
			if err != nil {
				t.Fatal(err)
			}
			answer, err := answerTo(packed, c.refuses)
			if err != nil {
				t.Fatal(err)
			}
			var got dnsmessage.Message
			if err := got.Unpack(answer); err != nil {
				t.Fatal(err)
			}
			if got.ID != 7 || !got.Response || got.RCode != c.code || len(got.Answers) != c.answers {
				t.Errorf("the answer is %+v, want %s with %d answers", got.Header, c.code, c.answers)
			}
		})
	}
}
