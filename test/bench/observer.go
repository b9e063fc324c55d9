package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// The hand-overs that are measured: what others have done, and what one of our managers does then.
const (
	deploymentCreated   = "cluster infrastructure ready -> ClusterDeployment"
	bootDataHandedOut   = "discovery image ready -> data handed out"
	hostBound           = "Agent known-unbound -> bound"
	hostApproved        = "Agent bound and known -> approved"
	kubeconfigPublished = "kubeconfig written -> published"
	lateWorkerBound     = "adding-hosts -> late worker bound"
	addedHostBound      = "day 2: Agent known-unbound -> bound"
	agentReleased       = "worker being deleted -> its Agent too"
	memberRemoved       = "master waits for its hook -> removed from etcd, released"
	upgradeRequested    = "version changed -> cluster asked for it"
	upgradeReported     = "upgrade completed -> reported"
	machinesDeleted     = "control plane being deleted -> its Machines too"
	clusterDeregistered = "last master gone -> ClusterDeployment being deleted"
	controlPlaneGone    = "cluster deregistered -> control plane gone"
	machineRuns         = "host installed -> Machine Running"
	masterReplaced      = "master gone -> another one made"
)

// renewalAnnotation is on a published kubeconfig with a token of the control plane provider's own.
const renewalAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-renewal"

// handOvers in the order in which they happen: those of an installation, those of a worker that comes while it runs,
// and those of an installed cluster.
var (
	dayOneHandOvers = []string{deploymentCreated, bootDataHandedOut, hostBound, hostApproved, kubeconfigPublished}
	lateHandOvers   = []string{lateWorkerBound}
	dayTwoHandOvers = []string{
		upgradeRequested, upgradeReported, addedHostBound, agentReleased, memberRemoved, machinesDeleted, clusterDeregistered, controlPlaneGone,
	}
	handOvers = slices.Concat(dayOneHandOvers, lateHandOvers, dayTwoHandOvers)
)

// byOthers are hand-overs that people wait for and that others make, of what we did before, or allow: another master is
// made when the etcd operator of the cluster is done with the one before. They have no target.
var byOthers = []string{machineRuns, masterReplaced}

// Facts, each about an object that is named <namespace>/<name>, but for writtenKubeconfig: <namespace>/<name of the
// cluster>/<digest of the content>, for those of upgrades: <namespace>/<name of the cluster> <version>, for those of
// Agents: <namespace>/<name> <UID>, as a host that is used again has one of the same name, and for masterGone:
// <namespace>/<name of the cluster> <how many were gone>.
const (
	infrastructureReady = "Cluster's infrastructure is provisioned and its endpoint known"
	ownedByCluster      = "control plane is owned by its Cluster"
	pullSecretExists    = "pull secret exists"
	imageReady          = "InfraEnv has its image"
	hostChosen          = "infra machine has its BareMetalHost"
	agentDiscovered     = "Agent is known-unbound"
	machineDiscovered   = "Agent of the Machine is known-unbound"
	agentReady          = "Agent is bound, known and in sync"
	takesHosts          = "cluster takes hosts before it is installed"
	installing          = "cluster is being installed"
	hostInstalled       = "Agent of the Machine is installed"
	addsHosts           = "cluster adds hosts"
	metadataWritten     = "AgentClusterInstall names the kubeconfig"
	writtenKubeconfig   = "assisted-service has written this kubeconfig"
	clusterAvailable    = "Cluster is Available"
	machineRunning      = "Machine is running"
	configDeleted       = "bootstrap config is being deleted"
	waitsForHook        = "Machine waits for its pre-terminate hook"
	versionWanted       = "spec.version is this one"
	upgradeTold         = "control plane tells of the upgrade"
	upgradeCompleted    = "history of the cluster says Completed"
	upgradeOver         = "control plane tells of no upgrade any more"
	beingDeleted        = "control plane is being deleted"
	masterAlive         = "control-plane Machine exists"
	masterGone          = "so many control-plane Machines are gone"
	mastersGone         = "no control-plane Machine is left"
	deploymentGone      = "ClusterDeployment is gone"
	installGone         = "AgentClusterInstall is gone"
)

// observer notes what it sees of the management cluster. All that is measured is seen by it through watches of the same kind, so that the
// way of an event from the API server to here is in cause and effect alike and cancels out. The audit log would have the times of the API
// server itself, but not what was written: which of the patches of a status made a condition true cannot be told from it.
type observer struct {
	*journal

	lives sync.Mutex
	// clusters has the Cluster of each Machine that was seen, masters the control-plane Machines of each Cluster.
	clusters map[string]string
	masters  map[string]*masters
}

// masters are the control-plane Machines of a Cluster: how many there are to be, those that there are, and how many were made and are gone.
type masters struct {
	wanted     int
	alive      map[string]bool
	made, gone int
}

func newObserver() *observer {
	return &observer{journal: newJournal(), clusters: map[string]string{}, masters: map[string]*masters{}}
}

// observe watches all that matters, in some namespaces or in all, until ctx ends. It returns when everything that exists was seen.
func observe(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, namespaces map[string]cache.Config) (*observer, error) {
	watches, err := cache.New(config, cache.Options{
		Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields(),
		DefaultNamespaces: namespaces,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot watch the management cluster: %w", err)
	}
	o := newObserver()
	go func() {
		// It ends with ctx and only then.
		_ = watches.Start(ctx)
	}()
	for _, kind := range []client.Object{
		&clusterv1.Cluster{}, &clusterv1.Machine{}, &controlplanev1.OpenshiftAssistedControlPlane{},
		&bootstrapv1.OpenshiftAssistedConfig{}, &hivev1.ClusterDeployment{},
		&hiveext.AgentClusterInstall{}, &aiv1beta1.InfraEnv{}, &aiv1beta1.Agent{}, &metal3api.BareMetalHost{}, &corev1.Secret{},
		&corev1.ConfigMap{},
	} {
		informer, err := watches.GetInformer(ctx, kind)
		if err != nil {
			return nil, fmt.Errorf("cannot watch %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { o.see(object, time.Now()) },
			UpdateFunc: func(_, object any) { o.see(object, time.Now()) },
			DeleteFunc: func(object any) { o.seeGone(object, time.Now()) },
		}); err != nil {
			return nil, fmt.Errorf("cannot watch %T: %w", kind, err)
		}
	}
	if !watches.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("cannot watch the management cluster: %w", context.Cause(ctx))
	}
	return o, nil
}

// await blocks until done is true. It is called again after every change.
func (o *observer) await(ctx context.Context, what string, done func() bool) error {
	for {
		o.mu.Lock()
		changed := o.changed
		o.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s did not happen: %w", what, context.Cause(ctx))
		}
	}
}

// see notes what an object says at a point in time.
func (o *observer) see(object any, at time.Time) {
	switch v := object.(type) {
	case *clusterv1.Cluster:
		ready := ptr.Deref(v.Status.Initialization.InfrastructureProvisioned, false) && v.Spec.ControlPlaneEndpoint.IsValid()
		o.note(infrastructureReady, name(v), ready, at)
		o.note(clusterAvailable, name(v), meta.IsStatusConditionTrue(v.Status.Conditions, clusterv1.ClusterAvailableCondition), at)
	case *clusterv1.Machine:
		o.note(machineRunning, name(v), v.Status.Phase == string(clusterv1.MachinePhaseRunning) && v.Status.NodeRef.Name != "", at)
		o.seeRunning(name(v), at)
		o.seeMachine(v, at)
		o.seeDeletion(v, at)
	case *controlplanev1.OpenshiftAssistedControlPlane:
		owned := slices.ContainsFunc(v.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == clusterv1.ClusterKind })
		o.note(ownedByCluster, name(v), owned, at)
		o.note(beingDeleted, name(v), !v.DeletionTimestamp.IsZero(), at)
		o.seeDeployable(v)
		o.seeControlPlane(v, at)
	case *bootstrapv1.OpenshiftAssistedConfig:
		o.note(configDeleted, name(v), !v.DeletionTimestamp.IsZero(), at)
		o.expect(bootDataHandedOut, name(v), need{{imageReady, name(v)}})
		if ptr.Deref(v.Status.Initialization.DataSecretCreated, false) { // which its InfraEnv is named after
			o.act(effect{handOver: bootDataHandedOut, subject: name(v), at: at, needs: []need{{{imageReady, name(v)}}}})
		}
	case *hivev1.ClusterDeployment:
		o.seeDeployment(v, at)
	case *hiveext.AgentClusterInstall:
		o.seeInstall(v, at)
	case *aiv1beta1.InfraEnv:
		created := conditionsv1.IsStatusConditionTrue(v.Status.Conditions, aiv1beta1.ImageCreatedCondition)
		o.note(imageReady, name(v), created && (v.Status.ISODownloadURL != "" || v.Status.BootArtifacts.DiscoveryIgnitionURL != ""), at)
	case *aiv1beta1.Agent:
		if !o.seeReference(agentReference, v, at) {
			o.seeAgent(v, at)
		}
	case *metal3api.BareMetalHost:
		if consumer := v.Spec.ConsumerRef; consumer != nil {
			o.note(hostChosen, consumer.Namespace+"/"+consumer.Name, true, at)
		}
	case *corev1.Secret:
		o.seeSecret(v, at)
	case *corev1.ConfigMap:
		o.seeReference(reference, v, at)
	}
}

// seeDeployment: a ClusterDeployment is made for a control plane with the same name, whose Cluster has the same name too in every sample.
// Looking up the release image is the manager's own affair and part of its time.
func (o *observer) seeDeployment(v *hivev1.ClusterDeployment, at time.Time) {
	if !v.DeletionTimestamp.IsZero() {
		o.act(effect{handOver: clusterDeregistered, subject: name(v), at: at, needs: deregistration(name(v))})
	}
	needs := []need{{{infrastructureReady, name(v)}}, {{ownedByCluster, name(v)}}}
	if ref := v.Spec.PullSecretRef; ref != nil {
		needs = append(needs, need{{pullSecretExists, v.Namespace + "/" + ref.Name}})
	}
	o.act(effect{handOver: deploymentCreated, subject: name(v), at: at, needs: needs})
}

// seeDeployable expects a ClusterDeployment for a control plane.
func (o *observer) seeDeployable(v *controlplanev1.OpenshiftAssistedControlPlane) {
	needs := []need{{{infrastructureReady, name(v)}}, {{ownedByCluster, name(v)}}}
	if ref := v.Spec.Config.PullSecretRef; ref != nil {
		needs = append(needs, need{{pullSecretExists, v.Namespace + "/" + ref.Name}})
	}
	o.expect(deploymentCreated, name(v), needs...)
}

// seeInstall knows the states of assisted-service in which it binds hosts (swagger: cluster.status).
func (o *observer) seeInstall(v *hiveext.AgentClusterInstall, at time.Time) {
	state := v.Status.DebugInfo.State
	o.note(takesHosts, name(v), slices.Contains([]string{"insufficient", "pending-for-input", "ready"}, state), at)
	o.note(installing, name(v), slices.Contains([]string{"installing", "finalizing"}, state), at)
	o.note(addsHosts, name(v), state == "adding-hosts", at)
	o.note(installGone, name(v), false, at)
	metadata := v.Spec.ClusterMetadata
	o.note(metadataWritten, name(v), metadata != nil && metadata.AdminKubeconfigSecretRef.Name != "", at)
}

// seeAgent: the name of an InfraEnv is that of the Machine and of its infra machine.
func (o *observer) seeAgent(v *aiv1beta1.Agent, at time.Time) {
	state, cluster, agent := v.Status.DebugInfo.State, v.Spec.ClusterDeploymentName, agentOf(v)
	discovered := state == "known-unbound" && len(v.Status.Inventory.Interfaces) > 0
	o.note(agentDiscovered, agent, discovered, at)
	machine := v.Namespace + "/" + v.Labels[aiv1beta1.InfraEnvNameLabel]
	o.note(machineDiscovered, machine, discovered, at)
	o.note(hostInstalled, machine, state == models.HostStatusInstalled || state == models.HostStatusAddedToExistingCluster, at)
	o.seeRunning(machine, at)
	synced := conditionsv1.IsStatusConditionTrue(v.Status.Conditions, aiv1beta1.SpecSyncedCondition)
	joined := cluster != nil && conditionsv1.IsStatusConditionTrue(v.Status.Conditions, aiv1beta1.BoundCondition)
	o.note(agentReady, agent, joined && synced && state == "known" && v.Status.Role == v.Spec.Role, at)
	if of := o.clusterOf(machine); of != "" {
		o.expect(hostBound, agent, binding(agent, machine, of)...)
	}
	if cluster == nil {
		return
	}
	if v.Spec.Role == models.HostRoleWorker {
		o.expect(agentReleased, agent, need{{configDeleted, machine}})
		if !v.DeletionTimestamp.IsZero() {
			o.act(effect{handOver: agentReleased, subject: agent, at: at, needs: []need{{{configDeleted, machine}}}})
		}
	}
	o.act(effect{handOver: hostBound, subject: agent, at: at, needs: binding(agent, machine, cluster.Namespace+"/"+cluster.Name)})
	o.expect(hostApproved, agent, need{{agentReady, agent}})
	if v.Spec.Approved {
		o.act(effect{handOver: hostApproved, subject: agent, at: at, needs: []need{{{agentReady, agent}}}})
	}
}

// binding is what the host of a Machine needs to be bound to a cluster.
func binding(agent, machine, cluster string) []need {
	return []need{{{agentDiscovered, agent}}, {{hostChosen, machine}}, {{takesHosts, cluster}, {addsHosts, cluster}}}
}

// seeRunning: a Machine may be Running before assisted-service tells that its host is installed. Then nobody waited.
func (o *observer) seeRunning(machine string, at time.Time) {
	installed, running := fact{hostInstalled, machine}, fact{machineRunning, machine}
	_, isInstalled := o.since(installed)
	if _, isRunning := o.since(running); isInstalled && isRunning {
		o.act(effect{handOver: machineRuns, subject: machine, at: at, needs: []need{{installed}}})
	}
}

func (o *observer) seeSecret(v *corev1.Secret, at time.Time) {
	cluster := v.Labels[clusterv1.ClusterNameLabel]
	switch {
	case v.Type == corev1.SecretTypeDockerConfigJson:
		o.note(pullSecretExists, name(v), true, at)
	case v.Labels["hive.openshift.io/secret-type"] == "kubeconfig":
		of := strings.TrimSuffix(name(v), "-admin-kubeconfig") + "/"
		current := of + digest(v.Data["kubeconfig"])
		for _, former := range o.holding(writtenKubeconfig, beginsWith(of)) {
			o.note(writtenKubeconfig, former, former == current, at)
		}
		o.note(writtenKubeconfig, current, true, at)
		o.expect(kubeconfigPublished, current, publishing(current)...)
	case v.Annotations[renewalAnnotation] != "":
		// The provider's own, which follows from nothing that assisted-service does.
	case v.Type == clusterv1.ClusterSecretType && v.Name == cluster+"-kubeconfig":
		content := v.Namespace + "/" + cluster + "/" + digest(v.Data["value"])
		o.act(effect{handOver: kubeconfigPublished, subject: content, at: at, needs: publishing(content)})
	}
}

// publishing is what a kubeconfig needs to be published, which is named as in writtenKubeconfig.
func publishing(content string) []need {
	return []need{{{writtenKubeconfig, content}}, {{metadataWritten, content[:strings.LastIndex(content, "/")]}}}
}

func name(object client.Object) string { return object.GetNamespace() + "/" + object.GetName() }

// agentOf names an Agent, and no other one that the same host had before.
func agentOf(v *aiv1beta1.Agent) string { return name(v) + " " + string(v.UID) }

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// ofCluster selects what is named after a cluster.
func ofCluster(key types.NamespacedName) func(string) bool { return beginsWith(key.String() + "-") }

func beginsWith(prefix string) func(string) bool {
	return func(subject string) bool { return strings.HasPrefix(subject, prefix) }
}

// unmatched are the acts for which no cause was seen, and the causes after which no act was.
type unmatched struct{ unexplained, unanswered []effect }

// measured are the reactions by hand-over, and what has no part. A worker that was bound because its cluster began to
// add hosts is a late one.
func (o *observer) measured() (map[string][]reaction, unmatched) {
	byHandOver := map[string][]reaction{}
	paired, unexplained := o.reactions()
	for _, r := range paired {
		if r.handOver == hostBound && slices.ContainsFunc(r.causes, func(f fact) bool { return f.what == addsHosts }) {
			r.handOver = addedHostBound
			if r.decisive.what == addsHosts {
				r.handOver = lateWorkerBound
			}
		}
		byHandOver[r.handOver] = append(byHandOver[r.handOver], r)
	}
	return byHandOver, unmatched{unexplained, o.unanswered()}
}
