// Package unreliable is a way to an API server, or to another server of HTTP, on which requests, answers and watches
// get lost, by chance and by a seed.
package unreliable

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/gateway"
)

const (
	// A request that times out keeps its manager waiting, a write that is late comes when the manager may have tried again.
	shortestDelay, longestDelay = 500 * time.Millisecond, 4 * time.Second
	// A watch is broken or stalled some time after it began.
	shortestWatch, longestWatch = time.Second, 20 * time.Second
	// What is carried out late is carried out though nobody waits for it any more.
	belatedTimeout = 10 * time.Second
)

// Way is such a way. It is reliable until [Way.Storm].
type Way struct {
	// Spared tells requests to which nothing happens; nil: none. It is set before the first of them.
	Spared func(*http.Request) bool

	mu sync.Mutex
	// calm is closed when a storm ends; nil where there is none.
	calm  chan struct{}
	seed  uint64
	rates Rates
	asked map[string]int
	count map[Fault]int
	late  sync.WaitGroup
	clock clock
	// traffic is what was asked for since [Way.Asked], writes how many writes were sent on.
	traffic map[Request]int
	writes  int
	// patience is how long a watch lives at most before something happens to it.
	patience time.Duration
}

// HubWay is the way of a manager to the API server of its hub.
type HubWay struct {
	*Way
	*gateway.Gateway
}

// ToHub listens for the manager that runs as a ServiceAccount (namespace:name); hub is where the kubeconfig of the hub will be.
func ToHub(ctx context.Context, account, hub string) (*HubWay, error) {
	w := &HubWay{Way: New()}
	var err error
	w.Gateway, err = gateway.New(ctx, account, hub, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		transport, target, err := w.Connect()
		if err != nil {
			http.Error(rw, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Pass(rw, r, transport, target)
	}))
	return w, err
}

// New returns a way for requests that somebody else receives: see [Way.Pass].
func New() *Way {
	return &Way{
		asked: map[string]int{}, count: map[Fault]int{}, traffic: map[Request]int{},
		clock: clock{step: make(chan struct{}), listed: map[string]bool{}}, patience: longestWatch,
	}
}

// Storm lets faults happen from now on, until [Way.Calm] or the next storm.
func (w *Way) Storm(seed uint64, rates Rates) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm != nil {
		close(w.calm)
	}
	w.seed, w.rates, w.calm = seed, rates, make(chan struct{})
	clear(w.asked)
}

// Calm ends the faults, and waits for the writes that are late. Watches that are stalled go on.
func (w *Way) Calm() {
	w.mu.Lock()
	if w.calm != nil {
		close(w.calm)
		w.calm = nil
	}
	w.mu.Unlock()
	w.late.Wait()
}

// Counts tells how often each fault happened.
func (w *Way) Counts() map[Fault]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.count)
}

func (w *Way) happened(fault Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count[fault]++
}

// fate is what happens to a request.
type fate struct {
	Fault
	// after is when it happens, lasts how long it does.
	after, lasts time.Duration
	// calm ends it before.
	calm <-chan struct{}
}

// fateOf decides. A request that changes by nothing but the version that it begins at is the same one.
func (w *Way) fateOf(method, path string, v verb) fate {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm == nil {
		return fate{}
	}
	asked := method + " " + path
	dice := chance(w.seed, method, path, w.asked[asked])
	w.asked[asked]++
	f := fate{Fault: w.rates.pick(v, dice), after: between(dice, shortestDelay, longestDelay), calm: w.calm}
	if v == watches {
		f.after, f.lasts = between(dice, shortestWatch, w.patience), between(dice, shortestDelay, 2*longestDelay)
	}
	switch f.Fault {
	case None:
	case WatchBroken, WatchStalled: // the watch may end before
	case Belated:
		w.late.Add(1) // before calm, or not at all: passLate takes it off
		fallthrough
	default:
		w.count[f.Fault]++
	}
	return f
}

// Pass passes a request on, or does not.
func (w *Way) Pass(rw http.ResponseWriter, r *http.Request, transport http.RoundTripper, target *url.URL) {
	v := verbOf(r.Method, r.URL.Query())
	w.countRequest(r.Method, r.URL.Path, v)
	var f fate
	if w.Spared == nil || !w.Spared(r) {
		f = w.fateOf(r.Method, r.URL.Path, v)
	}
	transport, step, old := w.clocked(r, transport)
	if old {
		f = fate{Fault: WatchExpired}
	}
	if err := f.refusal(); err != nil {
		f.wait(r.Context())
		refuse(rw, r, err)
		return
	}
	if f.Fault != RequestLost {
		w.countWrite(r)
	}
	switch f.Fault {
	case RequestLost:
		panic(http.ErrAbortHandler) // the connection is cut
	case Belated:
		w.passLate(r, f, transport, target)
		panic(http.ErrAbortHandler)
	case Repeated:
		w.passTwice(rw, r, transport, target)
		return
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	if verbOf(r.Method, r.URL.Query()) == watches {
		go endWith(ctx, step, end)
	}
	proxy := gateway.Proxy(transport, target)
	proxy.ModifyResponse = func(response *http.Response) error {
		switch f.Fault {
		case AnswerLost, AnswerWrong:
			return errUnanswered
		case WatchBroken, WatchStalled:
			response.Body = w.disturb(ctx, end, response.Body, f)
		}
		return nil
	}
	proxy.ErrorHandler = func(rw http.ResponseWriter, r *http.Request, err error) {
		if f.Fault == AnswerWrong && errors.Is(err, errUnanswered) {
			refuse(rw, r, apierrors.NewInternalError(errors.New("etcdserver: request timed out")))
			return
		}
		panic(http.ErrAbortHandler)
	}
	proxy.ServeHTTP(rw, r.WithContext(ctx))
}

// endWith ends a request with what it goes by.
func endWith(ctx context.Context, last <-chan struct{}, end context.CancelFunc) {
	select {
	case <-last:
		end()
	case <-ctx.Done():
	}
}

// errUnanswered is about a write that was carried out.
var errUnanswered = errors.New("the answer does not arrive")

// passTwice has a write carried out, and then again.
func (w *Way) passTwice(rw http.ResponseWriter, r *http.Request, transport http.RoundTripper, target *url.URL) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	first := again(r.Context(), r, body)
	gateway.Proxy(transport, target).ServeHTTP(httptest.NewRecorder(), first)
	gateway.Proxy(transport, target).ServeHTTP(rw, again(r.Context(), r, body))
}

// passLate has a write carried out when its manager has given it up.
func (w *Way) passLate(r *http.Request, f fate, transport http.RoundTripper, target *url.URL) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.late.Done()
		return
	}
	go func() {
		defer w.late.Done()
		ctx, cancel := context.WithTimeout(context.Background(), belatedTimeout)
		defer cancel()
		f.wait(ctx)
		proxy := gateway.Proxy(transport, target)
		proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // then it is lost
		proxy.ServeHTTP(httptest.NewRecorder(), again(ctx, r, body))
	}()
}

func again(ctx context.Context, r *http.Request, body []byte) *http.Request {
	copied := r.Clone(ctx)
	copied.Body = io.NopCloser(bytes.NewReader(body))
	return copied
}

// wait waits until a fault happens, or the storm ends. Most happen at once.
func (f fate) wait(ctx context.Context) {
	if f.Fault == TimedOut || f.Fault == Belated {
		pause(ctx, f.after, f.calm)
	}
}

// pause ends with the first of its arguments.
func pause(ctx context.Context, d time.Duration, calm <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-calm:
	case <-ctx.Done():
	}
}

// refusal is the answer to a request that is not carried out; nil: there is none.
func (f fate) refusal() error {
	switch f.Fault {
	case Conflict:
		return apierrors.NewConflict(schema.GroupResource{}, "it",
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	case TooManyRequests:
		return apierrors.NewTooManyRequests("too many requests, please try again later", 1)
	case ServerError:
		return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
	case Unavailable:
		return apierrors.NewServiceUnavailable("apiserver is shutting down")
	case TimedOut:
		return apierrors.NewTimeoutError("request did not complete within the allowed duration", 0)
	case WatchExpired:
		return apierrors.NewResourceExpired("too old resource version")
	}
	return nil
}

// refuse answers as an API server does.
func refuse(rw http.ResponseWriter, r *http.Request, err error) {
	// Whatever is accepted: clients read a Status by the type that it comes with.
	r.Header.Set("Accept", runtime.ContentTypeJSON)
	responsewriters.ErrorNegotiated(err, codecs, schema.GroupVersion{Version: "v1"}, rw, r)
}

// codecs know what refusals are written in.
var codecs = newCodecs()

func newCodecs() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme).WithoutConversion()
}

// disturb breaks a watch, or holds it back, when its time comes.
func (w *Way) disturb(ctx context.Context, end context.CancelFunc, body io.ReadCloser, f fate) io.ReadCloser {
	if f.Fault == WatchStalled {
		return &stalling{ReadCloser: body, way: w, ctx: ctx, from: time.Now().Add(f.after), fate: f}
	}
	go func() {
		timer := time.NewTimer(f.after)
		defer timer.Stop()
		select {
		case <-timer.C:
			w.happened(f.Fault)
			end()
		case <-f.calm:
		case <-ctx.Done():
		}
	}()
	return body
}

// stalling is a watch whose events from a time on come late.
type stalling struct {
	io.ReadCloser

	way  *Way
	ctx  context.Context //nolint:containedctx // that of the request, which a reader is not given
	from time.Time
	fate fate
	done bool
}

// Read implements io.Reader.
func (s *stalling) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if n > 0 && !s.done && time.Now().After(s.from) {
		s.done = true
		s.way.happened(WatchStalled)
		pause(s.ctx, s.fate.lasts, s.fate.calm)
	}
	return n, err
}
