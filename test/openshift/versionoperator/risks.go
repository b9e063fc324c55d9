package versionoperator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// evaluate adds the report of a cluster-version-operator with the feature gate ClusterUpdateAcceptRisks to a conditional
// update. The report has the risks that apply, and recommends an update with accepted risks. It returns the risks.
func evaluate(
	update *configv1.ConditionalUpdate, wanted *configv1.Update, known []Risk, now metav1.Time,
) []configv1.ConditionalUpdateRisk {
	accepted := func(risk string) bool {
		return wanted != nil && slices.ContainsFunc(wanted.AcceptRisks, func(r configv1.AcceptRisk) bool { return r.Name == risk })
	}
	open := 0
	for i := range update.Risks {
		risk := &update.Risks[i]
		update.RiskNames = append(update.RiskNames, risk.Name)
		applies := metav1.Condition{Type: "Applies", Status: cmp.Or(known[i].Exposure, metav1.ConditionTrue), LastTransitionTime: now}
		applies.Reason = map[metav1.ConditionStatus]string{
			metav1.ConditionTrue: "Match", metav1.ConditionFalse: "NotMatch", metav1.ConditionUnknown: "EvaluationFailed",
		}[applies.Status]
		risk.Conditions = []metav1.Condition{applies}
		if applies.Status != metav1.ConditionFalse && !(applies.Status == metav1.ConditionTrue && accepted(risk.Name)) {
			open++
		}
	}
	slices.Sort(update.RiskNames)
	if c := &update.Conditions[0]; open == 0 && c.Status != metav1.ConditionTrue {
		c.Status, c.Reason = metav1.ConditionTrue, "AllExposedRisksAccepted"
		c.Message = "The update is recommended, because either risk does not apply to this cluster or it is accepted by cluster admins."
	}
	return update.Risks
}

// unique returns risks by name, without duplicates.
func unique(risks []configv1.ConditionalUpdateRisk) []configv1.ConditionalUpdateRisk {
	slices.SortStableFunc(risks, func(a, b configv1.ConditionalUpdateRisk) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(risks, func(a, b configv1.ConditionalUpdateRisk) bool { return a.Name == b.Name })
}

// exposure returns the risks that the history records of a release, if risks can be accepted.
func (s *settings) exposure(release Release) string {
	if !s.recordsRisks || len(release.Risks) == 0 {
		return ""
	}
	var names []string
	for _, risk := range release.Risks {
		names = append(names, risk.Name)
	}
	slices.Sort(names)
	return fmt.Sprintf("The target release %s is exposed to the risks [%s] which were all explicitly accepted by the cluster administrator.",
		release.Image, strings.Join(names, ","))
}

// joined joins the texts that are not empty.
func joined(separator string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), separator)
}
