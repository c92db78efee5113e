// Package protection answers the webhooks of deletion protection, which is asked for by the label policy.kruise.io/delete-protection. What
// an object says of itself the API server judges by a ValidatingAdmissionPolicy. What has to be counted is counted here, live and without
// objects where their metadata are enough:
//
//	Namespace  refuses a namespace with the label that has active Pods or bound claims, and every namespace with protected objects in it
//	CRD        refuses a CRD with the label that has objects
//	Report     refuses nothing: it writes down what the policy is about to refuse
package protection
