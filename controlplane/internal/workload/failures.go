package workload

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

const (
	// connectFailed is the message with which the cache of connections logs the error of an attempt (Cluster API v1.12). It is handed out nowhere else.
	connectFailed = "Connect failed"
	// steadyFor is how long a cause is told at least before another of its kind takes its place: an API server that comes and goes fails now
	// in this way, now in that.
	steadyFor = time.Minute
	// wakeUps is the number of failures that may wait to be noticed.
	wakeUps = 1024
)

// FailureKind is what matters of a Failure to those who act upon it.
type FailureKind string

// The kinds of failures.
const (
	// KubeconfigRefused is a kubeconfig that is not used: see CheckKubeconfig.
	KubeconfigRefused FailureKind = "KubeconfigRefused"
	// Unauthorized are credentials that the cluster does not accept, or no more.
	Unauthorized FailureKind = "Unauthorized"
	// Unreachable is everything else.
	Unreachable FailureKind = "Unreachable"
)

// Failure is why there is no connection to a cluster.
type Failure struct {
	Kind FailureKind
	// Message tells it to people in words of our own: what a server answers is not for everybody who reads conditions.
	Message string
	// KubeconfigVersion is the resource version of the Secret with which it was tried.
	KubeconfigVersion string
}

type toldFailure struct {
	Failure
	since time.Time
}

func failureOf(err error) Failure {
	var refused RefusedError
	switch {
	case errors.As(err, &refused):
		return Failure{Kind: KubeconfigRefused, Message: refused.Error()}
	case apierrors.IsUnauthorized(err):
		return Failure{Kind: Unauthorized, Message: "its API server does not accept the credentials in the kubeconfig (401 Unauthorized)"}
	}
	return Failure{Kind: Unreachable, Message: causeOf(err)}
}

// causeOf says what kind of error it is.
func causeOf(err error) string {
	var (
		lookup    *net.DNSError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		errno     syscall.Errno
		timeout   interface{ Timeout() bool }
		answer    apierrors.APIStatus
	)
	switch {
	case errors.As(err, &lookup):
		return "the name of its API server cannot be looked up in DNS"
	case errors.As(err, &authority):
		return "the certificate of its API server is not from the authority in the kubeconfig"
	case errors.As(err, &name):
		return "the certificate of its API server is for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate of its API server has expired, or is not valid yet"
	case errors.As(err, &invalid):
		return "the certificate of its API server is not valid"
	case errors.As(err, &errno):
		return "its API server cannot be reached (" + errno.Error() + ")"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "its API server does not answer in time"
	case errors.As(err, &answer):
		code := int(answer.Status().Code)
		return fmt.Sprintf("its API server answers with %d %s", code, http.StatusText(code))
	}
	return "its API server gives no valid answer"
}

// failed notes why an attempt to connect failed, and makes the control plane reconcile when it was not known. Without a kubeconfig there was no attempt.
func (c *Clusters) failed(cluster client.ObjectKey, err error) {
	version := c.kubeconfigs.versionFor(cluster)
	if version == "" {
		c.failures.Delete(cluster)
		return
	}
	failure := failureOf(err)
	failure.KubeconfigVersion = version
	if value, found := c.failures.Load(cluster); found {
		known := value.(toldFailure) //nolint:forcetypeassert // nothing else is stored
		steady := known.Kind == failure.Kind && known.KubeconfigVersion == version && c.now().Sub(known.since) < steadyFor
		if known.Failure == failure || steady {
			return
		}
	}
	c.failures.Store(cluster, toldFailure{Failure: failure, since: c.now()})
	c.wake <- event.GenericEvent{Object: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}}
}

// failure is why the last attempt to connect failed; nil: none did.
func (c *Clusters) failure(cluster client.ObjectKey) *Failure {
	value, found := c.failures.Load(cluster)
	if !found {
		return nil
	}
	known := value.(toldFailure) //nolint:forcetypeassert // nothing else is stored
	return &known.Failure
}

// attempts is what the cache of connections logs of one cluster. It tries every second of each installation, which is no news; the conditions say it better.
type attempts struct {
	clusters *Clusters
	cluster  client.ObjectKey
}

// Init is of logr.LogSink.
func (attempts) Init(logr.RuntimeInfo) {}

// Enabled is of logr.LogSink: nothing but errors is of interest.
func (attempts) Enabled(int) bool { return false }

// Info is of logr.LogSink.
func (attempts) Info(int, string, ...any) {}

// WithValues is of logr.LogSink.
func (a attempts) WithValues(...any) logr.LogSink { return a }

// WithName is of logr.LogSink.
func (a attempts) WithName(string) logr.LogSink { return a }

// Error is of logr.LogSink.
func (a attempts) Error(err error, message string, _ ...any) {
	if message == connectFailed {
		a.clusters.failed(a.cluster, err)
	}
}
