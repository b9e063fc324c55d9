package diagnostics

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// apiServer answers reviews: the token "prometheus" belongs to a user that may get /metrics.
type apiServer struct {
	mu      sync.Mutex
	down    bool
	tokens  int
	reviews []authorizationv1.SubjectAccessReviewSpec
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case s.down:
		w.WriteHeader(http.StatusInternalServerError)
		reply(w, metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError})
	case strings.HasSuffix(req.URL.Path, "/tokenreviews"):
		s.tokens++
		review := &authenticationv1.TokenReview{}
		_ = json.NewDecoder(req.Body).Decode(review)
		review.Status.Authenticated = review.Spec.Token != "unknown"
		review.Status.User = authenticationv1.UserInfo{
			Username: review.Spec.Token, UID: "u", Groups: []string{"scrapers"},
			Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}},
		}
		if review.Spec.Token == "broken" {
			review.Status.Error = "the webhook does not answer"
		}
		reply(w, review)
	default:
		review := &authorizationv1.SubjectAccessReview{}
		_ = json.NewDecoder(req.Body).Decode(review)
		s.reviews = append(s.reviews, review.Spec)
		path := review.Spec.NonResourceAttributes
		review.Status.Denied = review.Spec.User == "denied"
		review.Status.Allowed = (review.Spec.User == "prometheus" || review.Status.Denied) && path.Path == "/metrics" && path.Verb == "get"
		reply(w, review)
	}
}

func reply(w io.Writer, review any) {
	encoded, err := json.Marshal(review)
	if err == nil {
		_, err = w.Write(encoded)
	}
	if err != nil {
		panic(err)
	}
}

func newHandler(t *testing.T, api *apiServer) http.Handler {
	t.Helper()
	g := NewWithT(t)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	filter, err := NewFilter(config, server.Client())
	g.Expect(err).NotTo(HaveOccurred())
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") })
	handler, err := filter(logr.Discard(), served)
	g.Expect(err).NotTo(HaveOccurred())
	return handler
}

func send(handler http.Handler, method, path, authorization string) *httptest.ResponseRecorder {
	req, recorder := httptest.NewRequest(method, path, http.NoBody), httptest.NewRecorder()
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	handler.ServeHTTP(recorder, req)
	return recorder
}

func TestFilterAdmitsOnlyAuthorizedUsers(t *testing.T) {
	t.Parallel()
	const known = "Bearer prometheus"
	for name, c := range map[string]struct {
		method, path, authorization string
		want, tokens, reviews       int
	}{
		"no token":                {authorization: "", want: http.StatusUnauthorized},
		"empty token":             {authorization: "Bearer ", want: http.StatusUnauthorized},
		"other scheme":            {authorization: "Basic prometheus", want: http.StatusUnauthorized},
		"token of excessive size": {authorization: "Bearer " + strings.Repeat("x", maxToken+1), want: http.StatusUnauthorized},
		"unknown token":           {authorization: "Bearer unknown", want: http.StatusUnauthorized, tokens: 1},
		"failed review":           {authorization: "Bearer broken", want: http.StatusUnauthorized, tokens: 1},
		"user without the right":  {authorization: "Bearer user", want: http.StatusForbidden, tokens: 1, reviews: 1},
		"denied":                  {authorization: "Bearer denied", want: http.StatusForbidden, tokens: 1, reviews: 1},
		"other path":              {path: "/debug/pprof/heap", authorization: known, want: http.StatusForbidden, tokens: 1, reviews: 1},
		"other method":            {method: http.MethodPut, authorization: known, want: http.StatusForbidden, tokens: 1, reviews: 1},
		"permitted":               {authorization: "Bearer prometheus", want: http.StatusOK, tokens: 1, reviews: 1},
		"scheme in lower case":    {authorization: "bearer prometheus", want: http.StatusOK, tokens: 1, reviews: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, api := NewWithT(t), &apiServer{}
			method, path := http.MethodGet, "/metrics"
			if c.method != "" {
				method = c.method
			}
			if c.path != "" {
				path = c.path
			}
			handler := newHandler(t, api)
			for range 3 { // the second and third answers come from the cache
				got := send(handler, method, path, c.authorization)
				g.Expect(got.Code).To(Equal(c.want))
				if c.want == http.StatusOK {
					g.Expect(got.Body.String()).To(Equal("metrics"))
				} else {
					g.Expect(got.Body.String()).NotTo(ContainSubstring("metrics"))
				}
			}
			g.Expect(api.tokens).To(Equal(c.tokens))
			g.Expect(api.reviews).To(HaveLen(c.reviews))
		})
	}
}

// A right can depend on groups, the UID and extra values, such as the scopes of a token.
func TestFilterPassesTheWholeUser(t *testing.T) {
	t.Parallel()
	g, api := NewWithT(t), &apiServer{}
	send(newHandler(t, api), http.MethodGet, "/metrics", "Bearer prometheus")
	g.Expect(api.reviews).To(ConsistOf(authorizationv1.SubjectAccessReviewSpec{
		User: "prometheus", UID: "u", Groups: []string{"scrapers"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a", "b"}},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/metrics"},
	}))
}

func TestAnswerOfOneTokenIsNotThatOfAnother(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	handler := newHandler(t, &apiServer{})
	g.Expect(send(handler, http.MethodGet, "/metrics", "Bearer prometheus").Code).To(Equal(http.StatusOK))
	g.Expect(send(handler, http.MethodGet, "/metrics", "Bearer unknown").Code).To(Equal(http.StatusUnauthorized))
	g.Expect(send(handler, http.MethodGet, "/debug/pprof/heap", "Bearer prometheus").Code).To(Equal(http.StatusForbidden))
}

func TestErrorsOfTheAPIServerAreNotCached(t *testing.T) {
	t.Parallel()
	g, api := NewWithT(t), &apiServer{down: true}
	handler := newHandler(t, api)
	got := send(handler, http.MethodGet, "/metrics", "Bearer prometheus")
	g.Expect(got.Code).To(Equal(http.StatusInternalServerError))
	g.Expect(got.Body.String()).NotTo(ContainSubstring("prometheus"))
	api.mu.Lock()
	api.down = false
	api.mu.Unlock()
	g.Expect(send(handler, http.MethodGet, "/metrics", "Bearer prometheus").Code).To(Equal(http.StatusOK))
}

// A flood of different tokens must not become a flood of reviews: the rate limit of the client delays them
// until the clients give up.
func TestReviewsAreLimited(t *testing.T) {
	t.Parallel()
	g, api := NewWithT(t), &apiServer{}
	handler := newHandler(t, api)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start, sent := time.Now(), sync.WaitGroup{}
	for i := range 200 {
		sent.Go(func() {
			req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", http.NoBody)
			req.Header.Set("Authorization", "Bearer "+strings.Repeat("x", i+1))
			handler.ServeHTTP(httptest.NewRecorder(), req)
		})
	}
	sent.Wait()
	g.Expect(api.tokens).To(BeNumerically("<=", reviewsMax+reviewQPS*int(time.Since(start).Seconds()+1)))
}
