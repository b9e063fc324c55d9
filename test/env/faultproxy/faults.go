package faultproxy

import (
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"
)

// Fault is the failure of a request or of its answer.
type Fault string

// None is no fault: the request is executed and answered.
const None Fault = ""

// Faults of requests that are not executed.
const (
	// Conflict is an answer 409, as after a concurrent write.
	Conflict Fault = "conflict"
	// TooManyRequests is an answer 429, with a Retry-After of one second.
	TooManyRequests Fault = "too-many-requests"
	// ServerError is an answer 500.
	ServerError Fault = "server-error"
	// Unavailable is an answer 503.
	Unavailable Fault = "unavailable"
	// TimedOut is an answer 504, after some seconds.
	TimedOut Fault = "timed-out"
	// RequestLost cuts the connection.
	RequestLost Fault = "request-lost"
)

// Faults of writes that are executed, which the client does not know.
const (
	// AnswerLost cuts the connection instead of the answer.
	AnswerLost Fault = "answer-lost"
	// AnswerWrong is an answer 500 instead of the answer to the write.
	AnswerWrong Fault = "answer-wrong"
	// Repeated is a write that is executed twice, as by a proxy that retries. The client receives the second answer.
	Repeated Fault = "repeated"
	// Belated is a write whose connection is cut at once, and which is executed some seconds later.
	Belated Fault = "belated"
)

// Faults of watches.
const (
	// WatchBroken ends a running watch.
	WatchBroken Fault = "watch-broken"
	// WatchExpired is an answer 410 to a watch: the client has to list all objects again.
	WatchExpired Fault = "watch-expired"
	// WatchStalled delays the events of a watch for some seconds, as an API server that lags does: the cache of the
	// client is old.
	WatchStalled Fault = "watch-stalled"
)

// Faults of servers that are no API server: see [Connection.Wrap].
const (
	// Unauthorized is an answer 401, NotFound one 404.
	Unauthorized Fault = "unauthorized"
	NotFound     Fault = "not-found"
	// Slow is an answer after some seconds, Hung is no answer.
	Slow Fault = "slow"
	Hung Fault = "hung"
	// AnswerForeign is an answer 200 of a proxy: a page for people.
	AnswerForeign Fault = "answer-foreign"
	// AnswerCut cuts the connection in the middle of the answer, AnswerShort omits the second half of the answer.
	AnswerCut   Fault = "answer-cut"
	AnswerShort Fault = "answer-short"
)

// Rates are the probabilities of faults.
type Rates map[Fault]float64

// Storm are the rates of all faults with which an installation still completes: every fourth write fails. The rates of
// watches count once for each watch.
var Storm = Rates{
	Conflict: 0.03, TooManyRequests: 0.02, ServerError: 0.03, Unavailable: 0.02, TimedOut: 0.01, RequestLost: 0.03,
	AnswerLost: 0.05, AnswerWrong: 0.03, Repeated: 0.03, Belated: 0.01,
	WatchBroken: 0.5, WatchExpired: 0.15, WatchStalled: 0.3,
}

// DownloadStorm are the rates for servers that are no API server and get few requests: two of five downloads fail.
var DownloadStorm = Rates{
	TooManyRequests: 0.04, Unavailable: 0.04, RequestLost: 0.04, Unauthorized: 0.04, NotFound: 0.04, Slow: 0.04, Hung: 0.04,
	AnswerForeign: 0.04, AnswerCut: 0.04, AnswerShort: 0.04,
}

// Silence loses all requests. Running watches continue.
var Silence = Rates{RequestLost: 1}

// verb is the class of a request, which determines its possible faults.
type verb int

const (
	reads verb = iota
	creates
	changes
	watches
	// downloads and heads are GET and HEAD requests to servers that are no API server.
	downloads
	heads
)

// verbOf returns the verb of a request to an API server.
func verbOf(method string, query url.Values) verb {
	switch {
	case query.Has("watch") && query.Get("watch") != "false":
		return watches
	case method == http.MethodPost:
		return creates
	case method == http.MethodPut, method == http.MethodPatch, method == http.MethodDelete:
		return changes
	}
	return reads
}

// faultsOf are the possible faults of each verb, in the order in which [Rates.pick] tries them. The answer 409 to a
// creation means that the object exists, so a creation gets no Conflict.
var faultsOf = map[verb][]Fault{
	reads:   {TooManyRequests, ServerError, Unavailable, TimedOut, RequestLost},
	creates: {TooManyRequests, ServerError, Unavailable, TimedOut, RequestLost, AnswerLost, AnswerWrong, Repeated, Belated},
	changes: {Conflict, TooManyRequests, ServerError, Unavailable, TimedOut, RequestLost, AnswerLost, AnswerWrong, Repeated, Belated},
	watches: {RequestLost, WatchExpired, WatchBroken, WatchStalled},
	heads:   {TooManyRequests, Unavailable, RequestLost, Unauthorized, NotFound, Slow, Hung, AnswerForeign},
	downloads: {
		TooManyRequests, Unavailable, RequestLost, Unauthorized, NotFound, Slow, Hung, AnswerForeign, AnswerCut, AnswerShort,
	},
}

// randomOf returns the random numbers of the nth request of its kind. They depend on the seed, but not on concurrent
// other requests.
func randomOf(seed uint64, method, uri string, nth int) *rand.Rand {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(method + " " + uri)) // never fails
	return rand.New(rand.NewPCG(seed, sum.Sum64()+uint64(nth)*0x9e3779b97f4a7c15))
}

// pick selects the fault of a request.
func (r Rates) pick(v verb, random *rand.Rand) Fault {
	at := random.Float64()
	for _, fault := range faultsOf[v] {
		if at -= r[fault]; at < 0 {
			return fault
		}
	}
	return None
}

// between returns a random duration in a range.
func between(random *rand.Rand, shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(random.Int64N(int64(longest-shortest)))
}
