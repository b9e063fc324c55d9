package main

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// follower watches all objects of the hub, independently of the managers, and checks the rules.
type follower struct {
	lab *lab.Lab
	// onViolation is called with each violation, as soon as it is found.
	onViolation func(violation)

	mu         sync.Mutex
	stays      map[types.NamespacedName][]stay // by BareMetalHost
	approvals  []approval
	claims     ledger
	servers    map[types.NamespacedName][]string // the subjects of claims on its server, by BareMetalHost
	judged     map[types.UID]bool
	namespaces map[string]*census
	broken     []violation
	found      map[string]bool
	checked    map[string]int
	// members are the last known etcd members of each cluster, by namespace. removals are the voters that were
	// removed since and are not judged yet.
	members  map[string][]lab.EtcdMember
	removals map[string][]removal
	// silent are the objects without a summary, with the times of their creation.
	silent map[subject]time.Time
	// most is the largest number of objects of a kind since [follower.alive].
	most map[string]int
}

// subject is an object that has conditions.
type subject struct {
	kind string
	key  types.NamespacedName
	uid  types.UID
}

// violation is a violation of a rule.
type violation struct {
	Rule string `json:"rule"`
	What string `json:"what"`
	Seed uint64 `json:"seed"`
	// Rounds is how many rounds from the seed on show the violation; zero: one.
	Rounds int       `json:"rounds,omitempty"`
	At     time.Time `json:"at"`
}

func newFollower(l *lab.Lab) *follower {
	return &follower{
		lab: l, onViolation: func(violation) {}, stays: map[types.NamespacedName][]stay{}, claims: ledger{},
		servers: map[types.NamespacedName][]string{}, judged: map[types.UID]bool{}, namespaces: map[string]*census{},
		found: map[string]bool{}, checked: map[string]int{}, silent: map[subject]time.Time{}, most: map[string]int{},
		members: map[string][]lab.EtcdMember{}, removals: map[string][]removal{},
	}
}

// start starts to watch, until ctx ends.
func (f *follower) start(ctx context.Context) error {
	seen, err := cache.New(f.lab.Env.Config(), cache.Options{Scheme: f.lab.Env.Scheme()})
	if err != nil {
		return fmt.Errorf("cannot follow the hub: %w", err)
	}
	infraMachine := &unstructured.Unstructured{}
	infraMachine.SetGroupVersionKind(lab.Metal3MachineKind)
	for _, kind := range []client.Object{
		infraMachine,
		&metal3api.BareMetalHost{}, &aiv1beta1.Agent{}, &aiv1beta1.InfraEnv{}, &hivev1.ClusterDeployment{}, &hiveext.AgentClusterInstall{},
		&clusterv1.Machine{}, &bootstrapv1.OpenshiftAssistedConfig{}, &controlplanev1.OpenshiftAssistedControlPlane{},
	} {
		informer, err := seen.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("cannot follow the hub: %w", err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { f.record(object, false) },
			UpdateFunc: func(_, object any) { f.record(object, false) },
			DeleteFunc: func(object any) { f.record(object, true) },
		}); err != nil {
			return fmt.Errorf("cannot follow the hub: %w", err)
		}
	}
	go func() { _ = seen.Start(ctx) }()
	if !seen.WaitForCacheSync(ctx) {
		return fmt.Errorf("cannot follow the hub: %w", ctx.Err())
	}
	return nil
}

// record records an event of an object.
func (f *follower) record(seen any, gone bool) {
	if last, ok := seen.(toolscache.DeletedFinalStateUnknown); ok {
		seen = last.Obj
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch object := seen.(type) {
	case *metal3api.BareMetalHost:
		f.recordHost(object, gone)
		f.recordClaims(object, gone)
	case *aiv1beta1.Agent:
		f.recordApproval(object, gone)
	case *clusterv1.Machine:
		f.census(object.Namespace).record(object, gone)
	case *aiv1beta1.InfraEnv:
		f.made("InfraEnv", object, gone)
	case *hivev1.ClusterDeployment:
		f.made("ClusterDeployment", object, gone)
	case *hiveext.AgentClusterInstall:
		f.made("AgentClusterInstall", object, gone)
	case *unstructured.Unstructured:
		f.made(object.GetKind(), object, gone)
	case *bootstrapv1.OpenshiftAssistedConfig:
		f.made("OpenshiftAssistedConfig", object, gone)
		f.recordAgentRef(object, gone)
		f.recordConditions("OpenshiftAssistedConfig", object, object.Status.Conditions, gone)
	case *controlplanev1.OpenshiftAssistedControlPlane:
		if object.Spec.Replicas != nil {
			f.census(object.Namespace).replicas = max(f.census(object.Namespace).replicas, int(*object.Spec.Replicas))
		}
		f.made("OpenshiftAssistedControlPlane", object, gone)
		f.recordConditions("OpenshiftAssistedControlPlane", object, object.Status.Conditions, gone)
	}
}

func (f *follower) census(namespace string) *census {
	c := f.namespaces[namespace]
	if c == nil {
		c = &census{
			machines: map[types.UID]*life{}, infraEnvs: map[string]string{}, excused: map[string]int{}, forgiven: map[string]bool{},
			made: map[string]map[types.UID]string{}, gone: map[string]int{}, consumers: map[types.NamespacedName][]string{},
		}
		f.namespaces[namespace] = c
	}
	return c
}

func (f *follower) made(kind string, object client.Object, gone bool) {
	c := f.census(object.GetNamespace())
	if c.made[kind] == nil {
		c.made[kind] = map[types.UID]string{}
	}
	c.made[kind][object.GetUID()] = object.GetName()
	if gone {
		c.gone[kind]++
	}
	f.most[kind] = max(f.most[kind], f.count(kind))
}

// recordHost records the infra machine of a host, which has the name of its Machine.
func (f *follower) recordHost(host *metal3api.BareMetalHost, gone bool) {
	key := client.ObjectKeyFromObject(host)
	var machine types.NamespacedName
	if consumer := host.Spec.ConsumerRef; consumer != nil && !gone {
		machine = types.NamespacedName{Namespace: consumer.Namespace, Name: consumer.Name}
	}
	stays, now := f.stays[key], time.Now()
	if last := len(stays) - 1; last >= 0 && stays[last].to.IsZero() {
		if stays[last].machine == machine {
			return
		}
		stays[last].to = now
		consumers := f.census(host.Namespace).consumers
		consumers[stays[last].machine] = slices.DeleteFunc(consumers[stays[last].machine], func(name string) bool { return name == host.Name })
	}
	if machine.Name != "" {
		stays = append(stays, stay{machine: machine, from: now})
		consumers := f.census(host.Namespace).consumers
		consumers[machine] = append(consumers[machine], host.Name)
	}
	f.stays[key] = stays
}

// recordApproval records an approval once. It is judged when all that was written before has been seen.
func (f *follower) recordApproval(agent *aiv1beta1.Agent, gone bool) {
	f.census(agent.Namespace).infraEnvs[agent.Name] = agent.Labels[aiv1beta1.InfraEnvNameLabel]
	if gone || !agent.Spec.Approved {
		delete(f.judged, agent.UID) // it may be approved again
		return
	}
	if f.judged[agent.UID] {
		return
	}
	f.judged[agent.UID] = true
	f.approvals = append(f.approvals, approval{
		agent: client.ObjectKeyFromObject(agent), at: time.Now(),
		machine: types.NamespacedName{Namespace: agent.Namespace, Name: agent.Labels[aiv1beta1.InfraEnvNameLabel]},
	})
}

func (f *follower) recordConditions(kind string, seen client.Object, conditions []metav1.Condition, gone bool) {
	o := subject{kind, client.ObjectKeyFromObject(seen), seen.GetUID()}
	if gone || isSummed(kind, conditions) {
		delete(f.silent, o)
	} else {
		f.silent[o] = seen.GetCreationTimestamp().Time
	}
	if gone {
		return
	}
	f.checked[conditionRule]++
	for _, finding := range incompleteConditions(kind, o.key, conditions) {
		f.report(conditionRule, finding)
	}
}

// requestDeletion records that the plan requests the deletion of a Machine.
func (f *follower) requestDeletion(m *clusterv1.Machine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.census(m.Namespace).record(m, false).requested = true
}

// requestScaleDown records that the plan scales a cluster down by some workers and masters.
func (f *follower) requestScaleDown(namespace string, workers, masters int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.census(namespace)
	c.scaledDownWorkers += workers
	c.scaledDownMasters += masters
}

// requestRetry records that a cluster is to be installed again, with other Machines.
func (f *follower) requestRetry(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.census(namespace)
	c.retried = true
	c.replaceAll()
}

// finishRetry records that a cluster is installed. The deletions for another installation were judged, and no more
// are excused.
func (f *follower) finishRetry(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.census(namespace).retried = false
}

// judgeWipe judges that a voting etcd member was wiped, unless its cluster is abandoned for another installation.
func (f *follower) judgeWipe(namespace string, w lab.WipedMember) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.census(namespace)
	if c.retried || w.Unknown { // unknown: etcd did not answer whether it voted
		c.lostMembers = append(c.lostMembers, w)
	} else if !slices.Contains(c.lostMembers, w) {
		f.report(lossRule, fmt.Sprintf("%s: the disk of Node %s was wiped at %s while its member of etcd voted", namespace,
			w.Node, w.Time.Format(time.TimeOnly)))
	}
}

// recordMembers records the current members of a cluster's etcd.
func (f *follower) recordMembers(namespace string, members []lab.EtcdMember) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removals[namespace] = append(f.removals[namespace], removedBetween(f.members[namespace], members, time.Now())...)
	f.members[namespace] = members
	f.checked[memberRule]++
}

// judgeRemovals compares the removed voters with the Machines of their Nodes, once they are older than the
// slack, or all at the end. The caller holds the lock.
func (f *follower) judgeRemovals(end bool) {
	for namespace, removals := range f.removals {
		f.removals[namespace] = slices.DeleteFunc(removals, func(removed removal) bool {
			if !end && time.Since(removed.at) < slack {
				return false
			}
			if what := f.census(namespace).wrongRemoval(namespace, removed); what != "" {
				f.report(memberRule, what)
			}
			return true
		})
	}
}

// reapplied records that a deleted cluster is applied again, with other Machines.
func (f *follower) reapplied(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.census(namespace)
	c.replaceAll()
	for _, kind := range named {
		for _, name := range c.made[kind] {
			c.forgiven[name] = c.abandoned && !c.everExisted(name)
		}
	}
	delete(f.members, namespace) // it has another etcd
	delete(f.removals, namespace)
	c.leaving, c.retried, c.abandoned, c.scaledDownWorkers, c.scaledDownMasters = false, false, false, 0, 0
}

// recordDeletion records that a cluster is deleted.
func (f *follower) recordDeletion(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.census(namespace).leaving = true
}

// excuse runs a foreign deletion of an object that counts for some kinds. The object is excused before the
// answer, because its successor may be seen before. Only the answer that it did not exist ends that: the storm
// may end before other answers arrive.
func (f *follower) excuse(namespace string, kinds []string, deletion func() error) error {
	f.excuseBy(namespace, 1, kinds)
	err := deletion()
	if apierrors.IsNotFound(err) {
		f.excuseBy(namespace, -1, kinds)
	}
	return err
}

func (f *follower) excuseBy(namespace string, by int, kinds []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kind := range kinds {
		f.census(namespace).excused[kind] += by
	}
}

// recordAbandonment records that a cluster is deleted during its installation.
func (f *follower) recordAbandonment(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.census(namespace).abandoned = true
}

// report records a violation, once. The caller holds the lock.
func (f *follower) report(rule, what string) {
	if f.found[rule+what] {
		return
	}
	f.found[rule+what] = true
	v := violation{Rule: rule, What: what, At: time.Now()}
	f.broken = append(f.broken, v)
	f.onViolation(v)
}

// check counts checks of a rule.
func (f *follower) check(rule string, times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checked[rule] += times
}

// alive returns the largest number of objects of a kind that existed at one time since the last call.
func (f *follower) alive(kind string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	most := max(f.most[kind], f.count(kind))
	f.most[kind] = f.count(kind)
	return most
}

// count counts the existing objects of a kind. The caller holds the lock.
func (f *follower) count(kind string) int {
	n := 0
	for _, c := range f.namespaces {
		n += len(c.made[kind]) - c.gone[kind]
	}
	return n
}

// fail records a violation, for callers without the lock.
func (f *follower) fail(rule, what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report(rule, what)
}

// judge checks the rules. Approvals are judged when they are older than the slack, or all at the end.
func (f *follower) judge(end bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var hosts map[types.NamespacedName]types.NamespacedName
	if len(f.approvals) > 0 {
		hosts = f.hostsByAgent()
	}
	f.approvals = slices.DeleteFunc(f.approvals, func(a approval) bool {
		if !end && time.Since(a.at) < slack {
			return false
		}
		f.checked[provenRule]++
		host, known := hosts[a.agent]
		if finding := proofMissing(a, known, f.stays[host]); finding != "" {
			f.report(provenRule, finding)
		}
		f.judgeClaims(a, host)
		return true
	})
	f.checked[twiceRule]++
	for _, namespace := range slices.Sorted(maps.Keys(f.namespaces)) {
		finding := f.namespaces[namespace].extraObjects(namespace)
		if end {
			finding = append(finding, f.namespaces[namespace].orphans(namespace)...)
		}
		for _, what := range finding {
			f.report(twiceRule, what)
		}
	}
	f.judgeSilent()
	f.judgeRemovals(end)
	f.checked[lossRule]++
	for _, loss := range f.lab.UnrequestedLosses() {
		f.report(lossRule, loss.String())
	}
	for _, escaped := range f.lab.Rack.Escaped() {
		f.report(lossRule, escaped)
	}
}

// judgeSilent reports objects without a summary after the grace period. The caller holds the lock.
func (f *follower) judgeSilent() {
	for o, since := range f.silent {
		if time.Since(since) > grace {
			f.report(conditionRule, fmt.Sprintf("%s %s has no condition %s", o.kind, o.key, summaries[o.kind]))
		}
	}
}

// hostsByAgent returns the BareMetalHosts of servers by the names of their Agents. The source is the servers
// themselves, not objects.
func (f *follower) hostsByAgent() map[types.NamespacedName]types.NamespacedName {
	found := map[types.NamespacedName]types.NamespacedName{}
	for key := range f.stays {
		if host := f.lab.Rack.Host(path.Join(key.Namespace, key.Name)); host != nil {
			found[types.NamespacedName{Namespace: key.Namespace, Name: host.Hardware().UUID}] = key
		}
	}
	return found
}

// searchSecrets searches all objects other than Secrets for secrets.
func (f *follower) searchSecrets(ctx context.Context) error {
	for _, kind := range lab.Kinds {
		if kind.Kind == "Secret" {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := f.lab.Client().List(ctx, list); err != nil {
			return fmt.Errorf("cannot search for secrets: %w", err)
		}
		for i := range list.Items {
			if where := findSecret(&list.Items[i]); where != "" {
				f.fail(secretRule, where)
			}
		}
		f.check(secretRule, len(list.Items))
	}
	return nil
}

// findSecret reports where an object has a secret that it must not have; "": nowhere.
func findSecret(object *unstructured.Unstructured) string {
	switch finding, err := lab.SecretIn(object); {
	case err != nil:
		return err.Error()
	case finding != "":
		return fmt.Sprintf("%s %s/%s has a password, key or token", object.GetKind(), object.GetNamespace(), object.GetName())
	}
	return ""
}
