package diagnostics

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/hashicorp/golang-lru/v2/expirable"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// The bounds of the filter. A refusal is cached, too: a client that repeats its request costs the API server
// nothing. The rates bound what clients with ever new tokens cost.
const (
	// cacheTTL is how long an answer of the API server is used. A revoked token or right is refused after that.
	cacheTTL   = time.Minute
	cacheSize  = 256
	timeout    = 10 * time.Second
	maxToken   = 16 << 10
	reviewQPS  = 5
	reviewsMax = 20
)

// request identifies what an answer of the API server is about. It holds a digest instead of the token.
type request struct {
	token        [sha256.Size]byte
	method, path string
}

// answer is the HTTP status for a request, and the user for the log.
type answer struct {
	status int
	user   string
}

// filter admits requests that the API server authenticates and authorizes.
type filter struct {
	tokens  authenticationclient.TokenReviewInterface
	rights  authorizationclient.SubjectAccessReviewInterface
	answers *expirable.LRU[request, answer]
}

// NewFilter returns a filter for controller-runtime's metrics server. It admits a request if the API server
// knows its bearer token (TokenReview), and permits the user the method on the path (SubjectAccessReview).
// Requests without a token and client certificates are not admitted. The manager needs the right to create
// both reviews.
func NewFilter(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.RateLimiter = reviewQPS, reviewsMax, nil
	tokens, err := authenticationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	rights, err := authorizationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	f := &filter{
		tokens: tokens.TokenReviews(), rights: rights.SubjectAccessReviews(),
		answers: expirable.NewLRU[request, answer](cacheSize, nil, cacheTTL),
	}
	return f.wrap, nil
}

func (f *filter) wrap(log logr.Logger, handler http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		token, given := bearerToken(req)
		if !given {
			http.Error(w, http.StatusText(http.StatusUnauthorized), http.StatusUnauthorized)
			return
		}
		answer, err := f.answerTo(req, token)
		switch {
		case err != nil:
			log.Error(err, "Cannot authorize a request for diagnostics", "path", req.URL.Path)
			http.Error(w, "the API server does not answer", http.StatusInternalServerError)
		case answer.status != http.StatusOK:
			log.V(4).Info("Refused a request for diagnostics", "path", req.URL.Path, "user", answer.user, "status", answer.status)
			http.Error(w, http.StatusText(answer.status), answer.status)
		default:
			handler.ServeHTTP(w, req)
		}
	}), nil
}

// bearerToken returns the token of a request; false if there is none, or it is longer than any real token.
func bearerToken(req *http.Request) (string, bool) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(req.Header.Get("Authorization")), " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(scheme, "bearer") && token != "" && len(token) <= maxToken
}

// answerTo returns the answer to a request, from the cache or the API server. An error is not cached.
func (f *filter) answerTo(req *http.Request, token string) (answer, error) {
	key := request{token: sha256.Sum256([]byte(token)), method: strings.ToLower(req.Method), path: req.URL.Path}
	if known, cached := f.answers.Get(key); cached {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(req.Context(), timeout)
	defer cancel()
	found, err := f.review(ctx, token, key)
	if err != nil {
		return answer{}, err
	}
	f.answers.Add(key, found)
	return found, nil
}

func (f *filter) review(ctx context.Context, token string, of request) (answer, error) {
	who, err := f.tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return answer{}, err
	}
	user := who.Status.User
	if !who.Status.Authenticated || who.Status.Error != "" || user.Username == "" {
		return answer{status: http.StatusUnauthorized}, nil
	}
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := f.rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: of.method, Path: of.path},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return answer{}, err
	case !may.Status.Allowed || may.Status.Denied:
		return answer{status: http.StatusForbidden, user: user.Username}, nil
	}
	return answer{status: http.StatusOK, user: user.Username}, nil
}
