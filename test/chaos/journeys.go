package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// step is a part of a journey.
type step string

const (
	// install waits until the cluster is installed, with all Machines.
	install step = "install"
	// addWorker asks for a worker more, in the middle of the installation where it comes before that.
	addWorker step = "add-worker"
	// removeWorker asks for one less, and waits until it is gone.
	removeWorker step = "remove-worker"
	// replaceWorker and replaceMaster delete a Machine, and wait until another runs in its place.
	replaceWorker step = "replace-worker"
	replaceMaster step = "replace-master"
	// growMasters asks for two masters more, and waits until they run; shrinkMasters takes them away again.
	growMasters   step = "grow-masters"
	shrinkMasters step = "shrink-masters"
	// settle waits until all is as it was asked for.
	settle step = "settle"
	// remove deletes the cluster, and waits until nothing is left.
	remove step = "remove"
	// abandon deletes it at any time of its installation.
	abandon step = "abandon"
	// linger waits for such a time.
	linger step = "linger"
	// reapply deletes it, and applies the same once more as soon as its Cluster is gone: under the names of what caches and others still know.
	reapply step = "reapply"
)

// workersOf are the workers of samples that have some.
var workersOf = map[string]int32{"ha": 2, "ha-disk-image": 2}

// clusterName is that of each cluster, which has a namespace of its own.
const clusterName = "c"

// poll is how often a step looks.
const poll = 500 * time.Millisecond

// traveller is a cluster on its journey.
type traveller struct {
	*round
	journey

	cluster *lab.Cluster
	// hosts is how many BareMetalHosts there are in its namespace.
	hosts   int
	workers int32
	// retried is the installation for which another attempt was asked.
	retried types.UID
	// forged are the names of certificate requests that are nobody's, with what they are for.
	forged map[string]string
	// doubted is since when a Machine without a Node is in the way.
	doubted time.Time
}

// travel goes through all steps. What it returns says where it ended, and what was waited for.
func (r *round) travel(ctx context.Context, j journey) error {
	mutations := lab.Mutations{
		Namespace: j.namespace, ClusterName: clusterName, ExtraHosts: 2, Divert: r.toCluster(j.namespace),
		OwnRepository: true,
	}
	if j.sample == "static-network" {
		mutations.ExtraHosts = 0 // there are addresses for no more
	}
	if slices.Contains(j.steps, replaceMaster) || slices.Contains(j.steps, growMasters) {
		mutations.EtcdMembers = true
	}
	cluster, err := r.lab.ApplySample(ctx, j.sample, mutations)
	if err != nil {
		return err
	}
	t := r.begin(j, cluster, len(cluster.Hosts))
	for _, s := range j.steps {
		begin := time.Now()
		if s == reapply {
			t, err = t.reapply(ctx)
		} else {
			err = t.take(ctx, s)
		}
		if err != nil {
			return fmt.Errorf("cluster %s (%s), step %s: %w", cluster.Key(), j.sample, s, err)
		}
		r.report.step(s, time.Since(begin))
		r.sayf("%s %s: %s after %s", j.namespace, j.sample, s, time.Since(begin).Round(time.Second))
	}
	return nil
}

func (t *traveller) take(ctx context.Context, s step) error {
	switch s {
	case install, settle:
		return t.settled(ctx)
	case addWorker:
		return t.scale(ctx, 1)
	case removeWorker:
		t.follower.askFewer(t.namespace, 1, 0)
		if err := t.scale(ctx, -1); err != nil {
			return err
		}
		return t.settled(ctx)
	case growMasters:
		return t.scaleMasters(ctx, mostMasters)
	case shrinkMasters:
		t.follower.askFewer(t.namespace, 0, mostMasters-fewestMasters)
		return t.scaleMasters(ctx, fewestMasters)
	case replaceWorker, replaceMaster:
		return t.replace(ctx, s == replaceMaster)
	case linger:
		return t.linger(ctx)
	case abandon:
		if err := t.linger(ctx); err != nil {
			return err
		}
	}
	if err := t.delete(ctx); err != nil {
		return err
	}
	return t.gone(ctx)
}

// linger waits for any time of an installation, in which the cluster will be deleted.
func (t *traveller) linger(ctx context.Context) error {
	t.follower.abandon(t.namespace)
	wait(ctx, t.patience)
	return ctx.Err()
}

// delete deletes the cluster, and waits until its Cluster is gone.
func (t *traveller) delete(ctx context.Context) error {
	t.leave(t.namespace)
	t.judgeWipes()
	t.follower.leave(t.namespace)
	if err := t.judgeForgeries(ctx); err != nil {
		return err
	}
	return t.cluster.Explain(t.cluster.Delete(ctx))
}

// reapply deletes the cluster, and applies it once more: its hosts are those that it had.
func (t *traveller) reapply(ctx context.Context) (*traveller, error) {
	state, err := t.cluster.State(ctx)
	if err != nil {
		return t, err
	}
	if err := t.delete(ctx); err != nil {
		return t, err
	}
	if err := t.judgeDeletions(); err != nil { // what was deleted so far was asked for
		return t, err
	}
	t.follower.comeBack(t.namespace)
	cluster, err := t.lab.ApplySample(ctx, t.sample, lab.Mutations{
		Namespace: t.namespace, ClusterName: clusterName,
		ExtraHosts: -state.Wanted, Divert: t.toCluster(t.namespace), OwnRepository: true,
	})
	if err != nil {
		return t, err
	}
	return t.begin(t.journey, cluster, t.hosts), nil
}

// settled waits until the cluster is installed, has the Machines that are wanted, and each of them a host and an Agent of its own.
func (t *traveller) settled(ctx context.Context) error {
	return t.await(ctx, "installed with all Machines", func(s *lab.State) bool {
		return s.ControlPlane.Status.Installation.Phase == controlplanev1.InstallationInstalled
	})
}

// await waits until a cluster is available and settled, and what is given besides. Its error tells what is not.
func (t *traveller) await(ctx context.Context, what string, and func(*lab.State) bool) error {
	var unsettled []string
	err := t.cluster.Wait(ctx, what, func(s *lab.State) bool {
		unsettled = t.unsettled(ctx, s)
		return s.Available() && len(unsettled) == 0 && and(s)
	})
	if err != nil && len(unsettled) > 0 {
		return fmt.Errorf("%w\n%s", err, strings.Join(unsettled, "\n"))
	}
	if err != nil {
		return err
	}
	t.judgeWipes()
	err = t.judgeDeletions() // what was deleted so far, for another installation
	t.follower.arrive(t.namespace)
	return err
}

// judgeWipes holds against the rules which members of etcd were wiped.
func (t *traveller) judgeWipes() {
	for _, w := range t.cluster.WipedMembers() {
		t.follower.lose(t.namespace, w)
	}
}

// unsettled names Machines that run on no host of their own, or on one that was installed as somebody else wrote, and
// InfraEnvs that are nobody's. One that somebody deleted is not made again for a host that is installed.
func (t *traveller) unsettled(ctx context.Context, s *lab.State) []string {
	var told []string
	taken := map[string]string{}
	for _, m := range s.Machines {
		if m.Host == nil || m.Config == nil || m.Infra == nil {
			told = append(told, m.Name+" has no host, config or infra machine")
			continue
		}
		if other := taken[m.Host.Name]; other != "" {
			told = append(told, m.Name+" and "+other+" are the same host")
		}
		taken[m.Host.Name] = m.Name
		if agent := m.Agent; agent != nil && agent.Spec.Approved && (agent.Spec.Hostname == madhouse || string(agent.Spec.Role) != m.Role()) {
			told = append(told, fmt.Sprintf("the host of %s was installed as %s %q", m.Name, agent.Spec.Role, agent.Spec.Hostname))
		}
	}
	infraEnvs := &aiv1beta1.InfraEnvList{}
	if err := t.lab.Client().List(ctx, infraEnvs, client.InNamespace(t.namespace)); err != nil {
		return append(told, err.Error())
	}
	for _, infraEnv := range infraEnvs.Items {
		if !slices.ContainsFunc(s.Machines, func(m lab.Machine) bool { return m.Name == infraEnv.Name }) {
			told = append(told, "InfraEnv "+infraEnv.Name+" is of no Machine")
		}
		if infraEnv.Labels[clusterv1.ClusterNameLabel] != t.cluster.Name || infraEnv.Labels[bootstrapv1.ConfigNameLabel] == "" {
			told = append(told, "InfraEnv "+infraEnv.Name+" has not the labels by which it is found")
		}
	}
	return told
}

// scale asks for more workers or fewer.
func (t *traveller) scale(ctx context.Context, more int32) error {
	t.workers += more
	return t.cluster.Scale(ctx, t.workers)
}

// Masters are three, or five for a while.
const fewestMasters, mostMasters = 3, 5

// scaleMasters asks for a number of masters, and waits until there are so many, with the etcd that they are to have.
func (t *traveller) scaleMasters(ctx context.Context, replicas int32) error {
	if err := t.cluster.ScaleControlPlane(ctx, replicas); err != nil {
		return err
	}
	return t.await(ctx, fmt.Sprintf("well with %d masters", replicas), func(*lab.State) bool { return t.cluster.EtcdSettled(ctx) == nil })
}

// replace deletes a Machine, and waits for another one.
func (t *traveller) replace(ctx context.Context, master bool) error {
	state, err := t.cluster.State(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(state.Machines, func(m lab.Machine) bool { return m.IsControlPlane() == master && m.DeletionTimestamp.IsZero() })
	if i < 0 {
		return errors.New("there is no Machine to replace")
	}
	gone := state.Machines[i]
	t.follower.ask(gone.Machine)
	if err := t.cluster.DeleteMachine(ctx, gone); client.IgnoreNotFound(err) != nil {
		return err
	}
	return t.await(ctx, "well with a Machine in place of "+gone.Name, func(s *lab.State) bool {
		return !slices.ContainsFunc(s.Machines, func(m lab.Machine) bool { return m.UID == gone.UID }) &&
			(t.cluster.Etcd() == nil || t.cluster.EtcdSettled(ctx) == nil)
	})
}

// leftBehind are the kinds of which nothing may be left of a cluster that was deleted; of Secrets there are the user's own.
var leftBehind = []string{
	"Cluster", "Machine", "Metal3Machine", "OpenshiftAssistedConfig", "OpenshiftAssistedControlPlane", "InfraEnv", "Agent",
	"AgentClusterInstall", "ClusterDeployment", "Secret",
}

// gone waits until nothing is left and all hosts are free.
func (t *traveller) gone(ctx context.Context) error {
	for {
		left, err := t.remains(ctx)
		if err == nil && len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("left behind: %s", strings.Join(left, ", ")), err, context.Cause(ctx))
		case <-time.After(poll):
		}
	}
}

func (t *traveller) remains(ctx context.Context) ([]string, error) {
	var left []string
	for _, kind := range lab.Kinds {
		if !slices.Contains(leftBehind, kind.Kind) {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := t.lab.Client().List(ctx, list, client.InNamespace(t.namespace)); err != nil {
			return nil, fmt.Errorf("cannot list what is left: %w", err)
		}
		for _, object := range list.Items {
			if kind.Kind != "Secret" || !t.isOfUser(object.GetName()) {
				left = append(left, kind.Kind+" "+object.GetName())
			}
		}
	}
	sets := &hivev1.ClusterImageSetList{}
	if err := t.lab.Client().List(ctx, sets); err != nil {
		return nil, fmt.Errorf("cannot list ClusterImageSets: %w", err)
	}
	for _, set := range sets.Items {
		if strings.HasPrefix(set.Name, t.namespace+"-") {
			left = append(left, "ClusterImageSet "+set.Name)
		}
	}
	hosts, err := t.occupied(ctx)
	return append(left, hosts...), err
}

// isOfUser reports whether a Secret is the user's: credentials of BMCs, the pull secret, and a kubeconfig that he gave.
func (t *traveller) isOfUser(name string) bool {
	return strings.HasSuffix(name, "-bmc") || name == t.cluster.Name+"-pull-secret" || name == secret.Name(t.cluster.Name,
		secret.Kubeconfig) && t.isGiven(t.namespace)
}

// occupied names the hosts that are not free, and says how many are missing.
func (t *traveller) occupied(ctx context.Context) ([]string, error) {
	hosts := &metal3api.BareMetalHostList{}
	if err := t.lab.Client().List(ctx, hosts, client.InNamespace(t.namespace)); err != nil {
		return nil, fmt.Errorf("cannot list BareMetalHosts: %w", err)
	}
	var told []string
	for _, host := range hosts.Items {
		if host.Status.Provisioning.State != metal3api.StateAvailable || host.Spec.ConsumerRef != nil ||
			t.lab.Rack.Host(path.Join(host.Namespace, host.Name)).PoweredOn() {
			told = append(told, fmt.Sprintf("BareMetalHost %s (%s)", host.Name, host.Status.Provisioning.State))
		}
	}
	if missing := t.hosts - len(hosts.Items); missing > 0 {
		told = append(told, fmt.Sprintf("%d BareMetalHosts fewer than there were", missing))
	}
	return told, nil
}
