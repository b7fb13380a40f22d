// SPDX-License-Identifier: Apache-2.0
#include "net/net.h"

void td_net_close(td_net *net)
{
    net->ops->close(net);
}

const char *td_net_id(const td_net *net)
{
    return net->ops->id(net);
}

td_net_counts td_net_counts_get(const td_net *net)
{
    return net->ops->counts ? net->ops->counts(net) : (td_net_counts){0};
}

td_err td_net_publish(td_net *net, const char *key, const td_net_qos *qos,
                      td_net_pub **ret_pub, td_errinfo *info)
{
    return net->ops->publish(net, key, qos, ret_pub, info);
}

void td_net_unpublish(td_net_pub *pub)
{
    pub->ops->unpublish(pub);
}

td_err td_net_put(td_net_pub *pub, const td_slice *parts, size_t count,
                  td_net_release release, void *user)
{
    return pub->ops->put(pub, parts, count, release, user);
}

td_err td_net_lend(td_net_pub *pub, size_t size, td_net_loan **ret_loan)
{
    return pub->ops->lend(pub, size, ret_loan);
}

td_err td_net_loan_put(td_net_loan *loan)
{
    return loan->ops->loan_put(loan);
}

td_err td_net_put_loans(td_net_pub *pub, const td_slice *parts, size_t count,
                        td_net_loan *const *loans, size_t loan_count)
{
    return pub->ops->put_loans(pub, parts, count, loans, loan_count);
}

void td_net_loan_free(td_net_loan *loan)
{
    loan->ops->loan_free(loan);
}

td_err td_net_matched(const td_net_pub *pub, bool *ret_matched)
{
    return pub->ops->matched(pub, ret_matched);
}

td_err td_net_subscribe(td_net *net, const char *keyexpr,
                        td_net_on_sample on_sample, void *user,
                        td_net_decl **ret_decl, td_errinfo *info)
{
    return net->ops->subscribe(net, keyexpr, on_sample, user, ret_decl, info);
}

td_err td_net_serve(td_net *net, const char *keyexpr,
                    td_net_on_request on_request, void *user,
                    td_net_decl **ret_decl, td_errinfo *info)
{
    return net->ops->serve(net, keyexpr, on_request, user, ret_decl, info);
}

td_err td_net_query(td_net *net, const char *keyexpr, td_slice payload,
                    int64_t timeout_ns, td_net_on_sample on_reply,
                    td_net_on_done on_done, void *user, td_errinfo *info)
{
    return net->ops->query(net, keyexpr, payload, timeout_ns, on_reply, on_done,
                           user, info);
}

td_err td_net_token(td_net *net, const char *key, td_net_decl **ret_decl,
                    td_errinfo *info)
{
    return net->ops->token(net, key, ret_decl, info);
}

td_err td_net_watch(td_net *net, const char *keyexpr, td_net_on_alive on_alive,
                    void *user, td_net_decl **ret_decl, td_errinfo *info)
{
    return net->ops->watch(net, keyexpr, on_alive, user, ret_decl, info);
}

td_err td_net_links(td_net *net, td_net_on_link on_link, void *user,
                    td_net_decl **ret_decl, td_errinfo *info)
{
    return net->ops->links(net, on_link, user, ret_decl, info);
}

td_err td_net_undeclare(td_net_decl *decl)
{
    return decl->ops->undeclare(decl);
}

td_err td_net_keep(const td_net_sample *sample, td_net_msg **ret_msg)
{
    return sample->net->ops->keep(sample, ret_msg);
}

td_err td_net_msg_bytes(td_net_msg *msg, td_slice *ret_bytes)
{
    return msg->ops->msg_bytes(msg, ret_bytes);
}

td_err td_net_msg_pieces(td_net_msg *msg, const td_slice **ret_pieces,
                         size_t *ret_count)
{
    return msg->ops->msg_pieces(msg, ret_pieces, ret_count);
}

void td_net_msg_free(td_net_msg *msg)
{
    msg->ops->msg_free(msg);
}

td_slice td_net_request_payload(const td_net_request *request)
{
    return request->ops->request_payload(request);
}

const char *td_net_request_key(const td_net_request *request)
{
    return request->ops->request_key(request);
}

td_err td_net_reply(td_net_request *request, const char *key,
                    const td_slice *parts, size_t count)
{
    return request->ops->reply(request, key, parts, count);
}

void td_net_request_free(td_net_request *request)
{
    request->ops->request_free(request);
}
