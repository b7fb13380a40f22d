// SPDX-License-Identifier: Apache-2.0
// A robot's models beside its policy (System 2, safety, monitor), simulated.
//
// When they are asked is the edge's own code (edge/pacing/components.h). The
// models of one robot share a network session, and each answers every
// observation after a time of its self, whoever else asks it: there is no queue
// and no batch, since these models are not what the simulation is about.
//
// Messages wait in mailboxes until td_sim_components_act() takes them. An
// observation becomes an answer with a due time, and is sent when that has
// come. Of an answer only the arrival counts; those that came and those that
// are late are counted.
//
// Nothing here starts a thread or reads a clock. The robot's network is
// borrowed.
#include "edge/pacing/components.h"
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>

// An answer that is not due yet.
typedef struct pending_answer pending_answer;
struct pending_answer {
    pending_answer *next;
    td_wire_ident ident;
    int64_t due_ns;
};

// A model beside the policy, and the robot's way to it.
typedef struct component {
    td_net_pub *obs, *action;
    td_net_decl *asks_decl, *answers_decl;
    td_sim_mailbox asks, answers;
    td_engine_synthetic_latency *latency;
    td_rand rand;
    pending_answer *thoughts;
    uint64_t seq; // the newest
    bool late;
    td_sim_component_counts counts;
} component;

struct td_sim_components {
    td_sim_world *world;
    const td_edge_core_settings *settings; // the robot's, and its name
    const char *robot;
    td_net *models; // their end of the network
    td_edge_components edge;
    component list[TD_SIM_MAX_COMPONENTS];
    uint32_t count;
};

static const td_net_qos obs_qos = {.priority = TD_NET_DATA};
static const td_net_qos action_qos = {.priority = TD_NET_INTERACTIVE_HIGH,
                                      .reliable = true};

static td_err think(td_sim_components *self, component *c, int64_t now_ns,
                    td_net_msg *msg, td_errinfo *info)
{
    td_slice bytes;
    td_wire_obs obs;
    TD_TRY(td_net_msg_bytes(msg, &bytes));
    TD_TRY(td_wire_obs_decode(self->world->decoder, bytes.data, bytes.size,
                              &obs, info));
    pending_answer *made = malloc(sizeof *made);
    if (!made) return TD_ERR_NOMEM;
    *made = (pending_answer){
        .next = c->thoughts,
        .ident = obs.ident,
        .due_ns = now_ns +
                  td_engine_synthetic_latency_draw_ns(c->latency, &c->rand, 1),
    };
    c->thoughts = made;
    return TD_OK;
}

static td_err answer(td_sim_components *self, component *c,
                     const td_wire_ident *ident, td_errinfo *info)
{
    const td_wire_action action = {
        .ident = *ident,
        .kind = TD_WIRE_PLAN,
        .server = td_wire_text_of("component"),
        .text = td_wire_text_of("go on"),
    };
    TD_TRY(td_wire_action_encode(self->world->encoder, &action, info));
    return td_sim_mailbox_put(c->action, self->world->encoder);
}

// Gives the answers that are due. Returns when the next one is.
static td_err answer_due(td_sim_components *self, component *c, int64_t now_ns,
                         int64_t *ret_due_ns, td_errinfo *info)
{
    pending_answer **link = &c->thoughts;
    *ret_due_ns = INT64_MAX;
    while (*link) {
        pending_answer *one = *link;
        if (one->due_ns > now_ns) {
            if (one->due_ns < *ret_due_ns) *ret_due_ns = one->due_ns;
            link = &one->next;
            continue;
        }
        *link = one->next;
        td_err err = answer(self, c, &one->ident, info);
        free(one);
        TD_TRY(err);
    }
    return TD_OK;
}

static void receive(td_sim_components *self, uint32_t index, int64_t now_ns)
{
    component *c = &self->list[index];
    td_net_msg *msg;
    while ((msg = td_sim_mailbox_take(&c->answers))) {
        td_edge_components_answered(&self->edge, index + 1);
        c->counts.answered++;
        td_sim_trace_line(&self->world->trace, now_ns,
                          "%s component %u answers", self->robot, index + 1);
        td_net_msg_free(msg);
    }
}

td_err td_sim_components_act(td_sim_components *self, int64_t now_ns,
                             int64_t *ret_due_ns, td_errinfo *info)
{
    *ret_due_ns = INT64_MAX;
    for (uint32_t i = 0; i < self->count; i++) {
        component *c = &self->list[i];
        td_net_msg *msg;
        int64_t due_ns;
        while ((msg = td_sim_mailbox_take(&c->asks))) {
            td_err err = think(self, c, now_ns, msg, info);
            td_net_msg_free(msg);
            TD_TRY(err);
        }
        TD_TRY(answer_due(self, c, now_ns, &due_ns, info));
        if (due_ns < *ret_due_ns) *ret_due_ns = due_ns;
        receive(self, i, now_ns);
    }
    return TD_OK;
}

static td_err ask(td_sim_components *self, uint32_t index,
                  td_edge_outgoing *outgoing, td_errinfo *info)
{
    component *c = &self->list[index];
    td_wire_obs obs;
    outgoing->request.seq = ++c->seq;
    c->counts.asked++;
    td_edge_observe_fill(self->settings, self->robot, "", outgoing,
                         outgoing->captured_ns, &obs);
    TD_TRY(td_wire_obs_encode(self->world->encoder, &obs, info));
    td_sim_trace_line(&self->world->trace, outgoing->captured_ns,
                      "%s asks component %u", self->robot, index + 1);
    return td_sim_mailbox_put(c->obs, self->world->encoder);
}

static void count_late(td_sim_components *self, int64_t now_ns)
{
    uint32_t mask = td_edge_components_late(&self->edge, now_ns);
    for (uint32_t i = 0; i < self->count; i++) {
        bool late = mask >> (i + 1) & 1;
        self->list[i].counts.late += late && !self->list[i].late;
        self->list[i].late = late;
    }
}

td_err td_sim_components_tick(td_sim_components *self, bool policy_asked,
                              bool connected, const td_edge_outgoing *seen,
                              td_errinfo *info)
{
    td_edge_outgoing outgoing = *seen;
    int64_t now_ns = seen->captured_ns;
    uint32_t due = td_edge_components_due(&self->edge, now_ns, policy_asked,
                                          connected ? UINT32_MAX : 0);
    for (uint32_t i = 0; i < self->count; i++)
        if (due >> (i + 1) & 1) TD_TRY(ask(self, i, &outgoing, info));
    count_late(self, now_ns);
    return TD_OK;
}

static td_err open_component(td_sim_components *self, uint32_t index,
                             td_net *robot, td_errinfo *info)
{
    component *c = &self->list[index];
    const td_sim_config *config = self->world->config;
    char model[32], key[TD_WIRE_MAX_KEY];
    td_wire_route route = self->world->route;
    (void)snprintf(model, sizeof model, "component%u", index + 1);
    route.model = model;
    td_rand seed;
    td_rand_init(&seed, config->seed);
    td_rand_fork(&seed, index, &c->rand);
    TD_TRY(td_engine_synthetic_latency_new(&config->components[index].latency,
                                           &c->latency, info));
    TD_TRY(td_wire_key(&route, self->robot, "obs", key, info));
    TD_TRY(td_net_publish(robot, key, &obs_qos, &c->obs, info));
    TD_TRY(td_net_subscribe(self->models, key, td_sim_mailbox_add, &c->asks,
                            &c->asks_decl, info));
    TD_TRY(td_wire_key(&route, self->robot, "action", key, info));
    TD_TRY(td_net_publish(self->models, key, &action_qos, &c->action, info));
    return td_net_subscribe(robot, key, td_sim_mailbox_add, &c->answers,
                            &c->answers_decl, info);
}

static td_err components_init(td_sim_components *self, td_net *robot,
                              td_errinfo *info)
{
    const td_sim_config *config = self->world->config;
    td_edge_component paces[1 + TD_SIM_MAX_COMPONENTS] = {0};
    char id[2 * TD_WIRE_MAX_NAME];
    for (uint32_t i = 0; i < self->count; i++) {
        paces[i + 1] = config->components[i].pace;
        td_sim_mailbox_init(&self->list[i].asks);
        td_sim_mailbox_init(&self->list[i].answers);
    }
    int64_t tick_ns = self->settings->period_ns / self->settings->substeps;
    if (td_edge_components_init(&self->edge, paces, 1 + self->count, tick_ns,
                                0) != TD_OK)
        return td_fail(info, TD_ERR_INVALID,
                       "components: a rate, or a number of asks of the policy");
    (void)snprintf(id, sizeof id, "%s-models", self->robot);
    TD_TRY(td_net_inproc_open(self->world->hub, id, &self->models, info));
    for (uint32_t i = 0; i < self->count; i++)
        TD_TRY(open_component(self, i, robot, info));
    return TD_OK;
}

td_err td_sim_components_new(td_sim_world *world, td_net *net,
                             const char *robot,
                             const td_edge_core_settings *settings,
                             td_sim_components **ret_components,
                             td_errinfo *info)
{
    td_sim_components *self = calloc(1, sizeof *self);
    if (!self) return TD_ERR_NOMEM;
    self->world = world;
    self->robot = robot;
    self->settings = settings;
    self->count = world->config->component_count;
    *ret_components = self; // the robot frees it, made whole or not
    return components_init(self, net, info);
}

static void close_component(component *c)
{
    td_net_msg *msg;
    if (c->asks_decl) (void)td_net_undeclare(c->asks_decl);
    if (c->answers_decl) (void)td_net_undeclare(c->answers_decl);
    if (c->obs) td_net_unpublish(c->obs);
    if (c->action) td_net_unpublish(c->action);
    while ((msg = td_sim_mailbox_take(&c->asks)) ||
           (msg = td_sim_mailbox_take(&c->answers)))
        td_net_msg_free(msg);
    while (c->thoughts) {
        pending_answer *next = c->thoughts->next;
        free(c->thoughts);
        c->thoughts = next;
    }
    if (c->latency) td_engine_synthetic_latency_free(c->latency);
}

void td_sim_components_free(td_sim_components *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        close_component(&self->list[i]);
    if (self->models) td_net_close(self->models);
    free(self);
}

void td_sim_components_count(const td_sim_components *self,
                             td_sim_component_counts *sums)
{
    for (uint32_t i = 0; i < self->count; i++) {
        sums[i].asked += self->list[i].counts.asked;
        sums[i].answered += self->list[i].counts.answered;
        sums[i].late += self->list[i].counts.late;
    }
}
