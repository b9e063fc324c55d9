package lightapi

import (
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/endpoint"
)

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// Paths parses the path of a request like an API server.
var Paths = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// Server is the API server of one cluster. It keeps its data when it is stopped and started again.
type Server struct {
	*endpoint.Endpoint

	store *store

	// kubernetes is the reported version.
	kubernetes atomic.Pointer[string]

	mu sync.Mutex
	// tokens are the issued tokens.
	tokens map[string]issued
	// requests are all requests for resources.
	requests audit.Requests
}

// issued has the user of a token and the Secret that it is bound to. A token without UID of a Secret does not
// end.
type issued struct {
	user  string
	bound key
	uid   types.UID
}

// New returns an empty server with the certificate and the client CAs of a configuration. It does not listen
// yet.
func New(config *tls.Config) *Server {
	s := &Server{store: newStore(), tokens: map[string]issued{}}
	s.ReportKubernetes("v1.33.0")
	s.Endpoint = endpoint.New(config, s)
	return s
}

// ReportKubernetes sets the reported version.
func (s *Server) ReportKubernetes(version string) { s.kubernetes.Store(&version) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user := s.user(r)
	if user == "" {
		fail(w, r, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	info, err := Paths.NewRequestInfo(r)
	if err != nil {
		fail(w, r, apierrors.NewBadRequest(err.Error()))
		return
	}
	if !info.IsResourceRequest {
		discover(w, r.URL.Path, *s.kubernetes.Load())
		return
	}
	s.record(r, info, user)
	k, v, err := negotiate(r, info)
	if err != nil {
		fail(w, r, err)
		return
	}
	c := &call{
		Server: s, request: r, info: info, view: v, user: user,
		key: key{kind: k, NamespacedName: types.NamespacedName{Name: info.Name}},
	}
	if k.namespaced {
		c.key.Namespace = info.Namespace
	}
	c.serve(w)
}

// record records the fields of an audit log.
func (s *Server) record(r *http.Request, info *request.RequestInfo, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, audit.Request{
		User: user, UserAgent: r.UserAgent(), Verb: info.Verb, URI: r.URL.RequestURI(), Time: time.Now(),
		Group: info.APIGroup, Resource: info.Resource, Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name,
	})
}

// Requests returns the requests for resources in the order of their arrival, without the status of responses.
func (s *Server) Requests() audit.Requests {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// serve writes the response.
func (c *call) serve(w http.ResponseWriter) {
	if c.info.Verb == "watch" {
		if err := c.watch(w); err != nil {
			fail(w, c.request, err)
		}
		return
	}
	object, code, err := c.answer()
	if err != nil {
		fail(w, c.request, err)
		return
	}
	object = c.view.of(object)
	version := object.GetObjectKind().GroupVersionKind().GroupVersion()
	responsewriters.WriteObjectNegotiated(codecs.WithoutConversion(), c.view, version, w, c.request, code, object, false)
}

func fail(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, codecs.WithoutConversion(), corev1.SchemeGroupVersion, w, r)
}

// user returns the user of a request, or "" if unknown. An administrator may impersonate another user.
func (s *Server) user(r *http.Request) string {
	user := ""
	if len(r.TLS.PeerCertificates) > 0 { // verified
		user = r.TLS.PeerCertificates[0].Subject.CommonName
	} else if token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); found {
		user = s.userOf(token)
	}
	if other := r.Header.Get(authenticationv1.ImpersonateUserHeader); user != "" && other != "" {
		return other
	}
	return user
}

// userOf returns the user of a token while its Secret exists.
func (s *Server) userOf(token string) string {
	s.mu.Lock()
	known, found := s.tokens[token]
	s.mu.Unlock()
	if !found {
		return ""
	}
	if known.uid == "" {
		return known.user
	}
	if secret, err := s.store.get(known.bound); err != nil || secret.GetUID() != known.uid {
		return ""
	}
	return known.user
}
