package kubelets

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/approval"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// Requests reads and approves the certificate requests of kubelets of installed clusters.
type Requests interface {
	Observe(ctx context.Context, cluster client.ObjectKey, known func(node string) bool) (Seen, error)
	Approve(ctx context.Context, cluster client.ObjectKey, request *approval.Request) (bool, error)
}

// Watcher watches for certificate requests of a cluster while they are needed.
type Watcher interface {
	ExpectHosts(cluster client.ObjectKey, needed bool)
}

// rememberedClusters is more than the clusters of one hub.
const rememberedClusters = 8192

// Approver approves the certificate requests of kubelets.
type Approver struct {
	live      client.Reader
	requests  Requests
	workloads Watcher
	writer    *writer.Writer
	clock     clock.PassiveClock
	// pending are the known requests of a cluster, by the UID of the control plane.
	pending *lru.Cache[types.UID, pendingRequests]
}

// NewApprover returns an Approver that reads Machines with the reader live.
func NewApprover(live client.Reader, requests Requests, workloads Watcher, w *writer.Writer, c clock.PassiveClock) *Approver {
	return &Approver{
		live: live, requests: requests, workloads: workloads, writer: w, clock: c,
		pending: lru.New[types.UID, pendingRequests](rememberedClusters),
	}
}

// pendingRequests are the known requests of the kubelets of a cluster.
type pendingRequests struct {
	// requested is the latest known request.
	requested types.UID
	// left are the names of the requests that were not approved. messages describes those that were also left the
	// time before.
	left     sets.Set[string]
	messages []string
	// before is the message from before the start of this manager. It is reported until requests were read.
	before string
	// silent is when an etcd member was last unresponsive. The API server cannot connect to a kubelet whose
	// serving certificate has expired.
	silent time.Time
	// lastRead is when requests were last read, and next when to read them again. pace is the backoff after
	// that.
	lastRead, next time.Time
	pace           wait.Backoff
}

// SilentFor is how long requests are expected after a member was unresponsive. It exceeds the interval of
// etcd inspections.
const SilentFor = 10 * time.Minute

// Approve approves the certificates of kubelets of an installed cluster that no other approver handles. These
// are the certificates of joining hosts, unless assisted-service approves them, and of hosts whose
// certificates have expired. Requests are watched while a host may create one.
func (p *Approver) Approve(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.Installed() {
		return true, nil
	}
	last, known := p.pending.Get(s.Stored.UID)
	if s.MemberSilent {
		last.silent = p.clock.Now()
		p.pending.Add(s.Stored.UID, last)
	}
	p.workloads.ExpectHosts(s.ClusterKey(), s.ExpectsKubelets() || p.clock.Now().Sub(last.silent) < SilentFor)
	if c := conditions.Get(s.Stored, controlplanev1.CertificatesApprovedCondition); c != nil && !known {
		last.before = c.Message
	}
	var err error
	due := s.Workload.Connected && (s.Workload.Requested != last.requested || last.before != "" || last.left.Len() > 0 &&
		!last.next.After(p.clock.Now()))
	switch wait := last.lastRead.Add(etcdgate.InitialDelay).Sub(p.clock.Now()); {
	case due && wait > 0:
		s.Again.In(wait) // every client with the token of the bootstrapper can create any number
	case due:
		if last, err = p.decideRequests(ctx, s, last); err == nil {
			p.pending.Add(s.Stored.UID, last)
		}
	}
	if s.Workload.Connected && last.left.Len() > 0 {
		s.Again.In(max(last.next.Sub(p.clock.Now()), etcdgate.InitialDelay)) // no event reports that an obstacle has ended
	}
	if message := last.message(); message != "" {
		s.Found.Block(tasks.KubeletApproval, controlplanev1.CertificateRequestMismatchReason, message)
	}
	return true, err
}

// tooMany is the message for a cluster with more requests than are read.
const tooMany = "the cluster has more CertificateSigningRequests of kubelets than are read at a time. " +
	"Delete the pending requests that no kubelet needs: nothing is lost, as a kubelet requests its certificate again"

// message returns the message of the condition, or "".
func (a *pendingRequests) message() string {
	if len(a.messages) == 0 {
		return a.before
	}
	return "not approved automatically. Approve (oc adm certificate approve) or delete: " + bound.List(a.messages)
}

// decideRequests reads and decides the current requests.
func (p *Approver) decideRequests(ctx context.Context, s *scope.Scope, last pendingRequests) (pendingRequests, error) {
	machines, err := s.LiveMachines(ctx, p.live) // the cache has no addresses
	if err != nil {
		return last, err
	}
	hosts := approval.HostsOf(s.Facts, machines)
	seen, err := p.requests.Observe(ctx, s.ClusterKey(), hosts.Have)
	if errors.Is(err, cluster.ErrNotConnected) {
		return last, nil
	}
	if err != nil {
		return last, err
	}
	now := pendingRequests{
		requested: s.Workload.Requested, silent: last.silent, lastRead: p.clock.Now(), left: sets.New[string](),
		pace: last.pace,
	}
	if seen.MachineAPI {
		return now, nil // the approver of the Machine API handles these hosts
	}
	var failures []error
	for _, decision := range approval.Decide(seen.Requests, hosts, seen.Nodes, p.clock.Now()) {
		obstacle := decision.Obstacle
		if obstacle == "" {
			obstacle, err = p.approve(ctx, s, decision.Request)
			failures = append(failures, err)
		}
		if obstacle != "" {
			now.leave(decision.Request, obstacle, last)
		}
	}
	if seen.More {
		now.messages = append(now.messages, tooMany)
	}
	if err := errors.Join(failures...); err != nil {
		return last, err
	}
	now.pause(p.clock.Now(), last)
	return now, nil
}

// approve approves a request, unless another client changed it.
func (p *Approver) approve(ctx context.Context, s *scope.Scope, request *approval.Request) (obstacle string, err error) {
	approved, err := p.requests.Approve(ctx, s.ClusterKey(), request)
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot approve CertificateSigningRequest %s of the workload cluster: %w", request.Name, err)
	case !approved:
		return "another client changed it", nil
	}
	s.Found.Event(corev1.EventTypeNormal, "CertificateApproved", "Approved %s for Node %s of the cluster (CertificateSigningRequest %s)",
		request.Description(), request.Node, request.Name)
	return "", nil
}

// leave records that a request is not approved. It is reported only if that lasts, because the facts of the
// hub may be older than those of the kubelet.
func (a *pendingRequests) leave(request *approval.Request, obstacle string, last pendingRequests) {
	a.left.Insert(request.Name)
	if last.left.Has(request.Name) || last.before != "" {
		a.messages = append(a.messages, fmt.Sprintf("CertificateSigningRequest %s, %s for Node %s: %s", request.Name,
			request.Description(),
			request.Node, obstacle))
	}
}

// pause sets the time of the next read, with a backoff while nothing changes.
func (a *pendingRequests) pause(now time.Time, last pendingRequests) {
	if !a.left.Equal(last.left) {
		a.pace = etcdgate.BackoffFrom(etcdgate.InitialDelay)
	}
	a.next = now.Add(a.pace.Step())
}
