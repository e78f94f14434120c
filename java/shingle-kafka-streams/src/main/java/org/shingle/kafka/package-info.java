/**
 * State stores of Kafka Streams on Shingle.
 *
 * <p>{@link org.shingle.kafka.ShingleDslStoreSuppliers}, named by the property {@code
 * dsl.store.suppliers.class}, gives every operator of an application stores of Shingle. {@link
 * org.shingle.kafka.ShingleStoreSuppliers} gives single ones. {@link
 * org.shingle.kafka.ShingleConfig} has the names of the properties.
 *
 * <p>Each store is a database of its own, in the directory of its task. The stores of an
 * application share memory and threads. The changelog is the log of the stores, so the databases
 * write none, and the bytes in the changelog are those that Kafka's own stores write.
 */
package org.shingle.kafka;
