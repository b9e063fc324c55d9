package unreliable

import (
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"
)

// Fault is what can happen to a request on its way to the API server and back.
type Fault string

// None is a request that is carried out and answered.
const None Fault = ""

// Faults before a request was carried out: it is not.
const (
	// Conflict is an answer 409: somebody else was faster.
	Conflict Fault = "conflict"
	// TooManyRequests is an answer 429, with the advice to come again in a second.
	TooManyRequests Fault = "too-many-requests"
	// ServerError is an answer 500.
	ServerError Fault = "server-error"
	// Unavailable is an answer 503.
	Unavailable Fault = "unavailable"
	// TimedOut is an answer 504, after a while.
	TimedOut Fault = "timed-out"
	// RequestLost ends the connection.
	RequestLost Fault = "request-lost"
)

// Faults after a write was carried out, or while it is: the manager does not know.
const (
	// AnswerLost ends the connection in place of the answer.
	AnswerLost Fault = "answer-lost"
	// AnswerWrong is an answer 500 in place of that of the write.
	AnswerWrong Fault = "answer-wrong"
	// Repeated is a write that is carried out twice, as by something on the way that tries again. The second answer is passed on.
	Repeated Fault = "repeated"
	// Belated is a write whose connection ends at once, and which is carried out some seconds later.
	Belated Fault = "belated"
)

// Faults of watches.
const (
	// WatchBroken ends a watch in the middle.
	WatchBroken Fault = "watch-broken"
	// WatchExpired refuses a watch with 410: the manager has to list all again.
	WatchExpired Fault = "watch-expired"
	// WatchStalled holds the events of a watch back for some seconds, as of an API server that lags behind: what the
	// manager has cached is old.
	WatchStalled Fault = "watch-stalled"
)

// Faults of servers that are no API server: see [Way.Before].
const (
	// Unauthorized is an answer 401, NotFound one 404.
	Unauthorized Fault = "unauthorized"
	NotFound     Fault = "not-found"
	// Slow is an answer that comes after a while, Hung one that does not come.
	Slow Fault = "slow"
	Hung Fault = "hung"
	// AnswerForeign is an answer 200 of something else that stands in between: a page for people.
	AnswerForeign Fault = "answer-foreign"
	// AnswerCut ends the connection in the middle of the answer, AnswerShort leaves the other half of it out.
	AnswerCut   Fault = "answer-cut"
	AnswerShort Fault = "answer-short"
)

// Rates are the probabilities of faults.
type Rates map[Fault]float64

// Storm is weather in which an installation still comes to its end: of four writes one goes wrong. A watch is watched over as a whole.
var Storm = Rates{
	Conflict: 0.03, TooManyRequests: 0.02, ServerError: 0.03, Unavailable: 0.02, TimedOut: 0.01, RequestLost: 0.03,
	AnswerLost: 0.05, AnswerWrong: 0.03, Repeated: 0.03, Belated: 0.01,
	WatchBroken: 0.5, WatchExpired: 0.15, WatchStalled: 0.3,
}

// DownloadStorm is weather for servers that are no API server, which are asked for little: of five downloads two go wrong.
var DownloadStorm = Rates{
	TooManyRequests: 0.04, Unavailable: 0.04, RequestLost: 0.04, Unauthorized: 0.04, NotFound: 0.04, Slow: 0.04, Hung: 0.04,
	AnswerForeign: 0.04, AnswerCut: 0.04, AnswerShort: 0.04,
}

// Silence lets nothing through, but for what is watched already.
var Silence = Rates{RequestLost: 1}

// verb is what a request does, as far as faults are concerned.
type verb int

const (
	reads verb = iota
	creates
	changes
	watches
	// downloads and looks are GET and HEAD of what no API server serves.
	downloads
	looks
)

// verbOf tells what a request does.
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

// faultsOf are what can happen to a request, in the order in which chance looks at them. A conflict is no answer to a
// creation: it would say that the object exists.
var faultsOf = map[verb][]Fault{
	reads:   {TooManyRequests, ServerError, Unavailable, TimedOut, RequestLost},
	creates: {TooManyRequests, ServerError, Unavailable, TimedOut, RequestLost, AnswerLost, AnswerWrong, Repeated, Belated},
	changes: {Conflict, TooManyRequests, ServerError, Unavailable, TimedOut, RequestLost, AnswerLost, AnswerWrong, Repeated, Belated},
	watches: {RequestLost, WatchExpired, WatchBroken, WatchStalled},
	looks:   {TooManyRequests, Unavailable, RequestLost, Unauthorized, NotFound, Slow, Hung, AnswerForeign},
	downloads: {
		TooManyRequests, Unavailable, RequestLost, Unauthorized, NotFound, Slow, Hung, AnswerForeign, AnswerCut, AnswerShort,
	},
}

// chance decides by the seed, and by what is asked for the how-many-th time: so it depends as little as can be on what
// happens elsewhere at the same time.
func chance(seed uint64, method, uri string, nth int) *rand.Rand {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(method + " " + uri)) // never fails
	return rand.New(rand.NewPCG(seed, sum.Sum64()+uint64(nth)*0x9e3779b97f4a7c15))
}

// pick is what happens to a request.
func (r Rates) pick(v verb, dice *rand.Rand) Fault {
	at := dice.Float64()
	for _, fault := range faultsOf[v] {
		if at -= r[fault]; at < 0 {
			return fault
		}
	}
	return None
}

// between is a time from a range.
func between(dice *rand.Rand, shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(dice.Int64N(int64(longest-shortest)))
}
