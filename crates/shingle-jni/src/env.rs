//! The Java machine: arrays, buffers and exceptions, as safe functions.
//!
//! This is the only file that trusts the Java machine: that its function table is what jni.h says,
//! that references are valid during the call, and that nothing changes a direct buffer that a call
//! uses.
//!
//! Invariants:
//! - Null references are checked before use.
//! - No function of the table is called while an exception is pending, except those that may be.

use jni_sys::{
    _jmethodID, _jobject, JNI_OK, JNI_VERSION_1_8, JNIEnv, JavaVM, jint, jlong, jobject, jvalue,
};
use shingle::{Error, Result};
use std::ffi::CStr;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::slice;

/// Keys and values up to this many bytes are copied to the stack, larger ones to the heap.
const STACK_BYTES: usize = 512;

/// The Java machine, as the current thread sees it during a call.
#[repr(transparent)]
pub struct Env<'a> {
    raw: NonNull<JNIEnv>,
    call: PhantomData<&'a *mut ()>,
}

/// A reference to a Java object that lives during the call; null is possible.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Object<'a> {
    raw: jobject,
    call: PhantomData<&'a ()>,
}

/// A `byte[]`, or null.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct ByteArray<'a>(Object<'a>);

/// A `ByteBuffer`, or null.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Buffer<'a>(Object<'a>);

impl Object<'_> {
    const NULL: Object<'static> = Object { raw: ptr::null_mut(), call: PhantomData };
}

impl Default for ByteArray<'_> {
    fn default() -> Self {
        ByteArray(Object::NULL)
    }
}

impl ByteArray<'_> {
    /// There is no array.
    pub(crate) fn is_null(self) -> bool {
        self.0.raw.is_null()
    }
}

/// Where the bytes of an array are during a call.
pub(crate) struct Space {
    stack: [MaybeUninit<u8>; STACK_BYTES],
    heap: Vec<u8>,
}

impl Space {
    pub(crate) fn new() -> Space {
        Space { stack: [MaybeUninit::uninit(); STACK_BYTES], heap: Vec::new() }
    }

    /// Memory for `size` bytes.
    fn of(&mut self, size: usize) -> &mut [MaybeUninit<u8>] {
        if size <= STACK_BYTES {
            return &mut self.stack[..size];
        }
        self.heap = Vec::with_capacity(size);
        &mut self.heap.spare_capacity_mut()[..size]
    }
}

/// Calls a function of the table, of the version of JNI that brought it.
macro_rules! table {
    ($env:expr, $version:ident, $name:ident $(, $argument:expr)*) => {
        ((**$env.raw.as_ptr()).$version.$name)($env.raw.as_ptr() $(, $argument)*)
    };
}

impl<'a> Env<'a> {
    /// The bytes of an array, copied to `space`; an error where there is no array.
    pub(crate) fn bytes<'s>(&self, array: ByteArray<'_>, space: &'s mut Space) -> Result<&'s [u8]> {
        self.first_bytes(array, jint::MAX, space)
    }

    /// The first bytes of an array, at most `count`.
    pub(crate) fn first_bytes<'s>(
        &self,
        array: ByteArray<'_>,
        count: jint,
        space: &'s mut Space,
    ) -> Result<&'s [u8]> {
        if array.is_null() {
            return Err(Error::invalid("an array is null"));
        }
        // SAFETY: a reference that is not null is valid during the call.
        let size = unsafe { table!(self, v1_1, GetArrayLength, array.0.raw) }.min(count).max(0);
        let memory = space.of(usize::try_from(size).unwrap_or(0));
        let start = memory.as_mut_ptr();
        // SAFETY: the array has at least as many bytes as the memory, and its size never changes.
        // So the call succeeds and fills all of the memory.
        unsafe {
            table!(self, v1_1, GetByteArrayRegion, array.0.raw, 0, size, start.cast());
            Ok(slice::from_raw_parts(start.cast(), memory.len()))
        }
    }

    /// The bytes of an array; none where there is no array.
    pub(crate) fn optional_bytes<'s>(
        &self,
        array: ByteArray<'_>,
        space: &'s mut Space,
    ) -> Result<Option<&'s [u8]>> {
        if array.is_null() { Ok(None) } else { self.bytes(array, space).map(Some) }
    }

    /// An array of these bytes. Null, with Java's own error pending, where Java has no memory.
    pub(crate) fn new_bytes(&self, bytes: &[u8]) -> Result<ByteArray<'a>> {
        let size = java_size(bytes.len())?;
        // SAFETY: the new array has as many bytes as are copied to it. Without memory it is null.
        let raw = unsafe {
            let raw = table!(self, v1_1, NewByteArray, size);
            if !raw.is_null() {
                table!(self, v1_1, SetByteArrayRegion, raw, 0, size, bytes.as_ptr().cast());
            }
            raw
        };
        Ok(ByteArray(Object { raw, call: PhantomData }))
    }

    /// An array, or null where there are no bytes.
    pub(crate) fn new_optional_bytes(&self, bytes: Option<&[u8]>) -> Result<ByteArray<'a>> {
        bytes.map_or(Ok(ByteArray::default()), |bytes| self.new_bytes(bytes))
    }

    /// Whether the array is large enough for these bytes, which are then in it.
    pub(crate) fn fill(&self, array: ByteArray<'_>, bytes: &[u8]) -> Result<bool> {
        if array.is_null() {
            return Err(Error::invalid("an array is null"));
        }
        let size = java_size(bytes.len())?;
        // SAFETY: a reference that is not null is valid, and the array is large enough.
        unsafe {
            if table!(self, v1_1, GetArrayLength, array.0.raw) < size {
                return Ok(false);
            }
            table!(self, v1_1, SetByteArrayRegion, array.0.raw, 0, size, bytes.as_ptr().cast());
        }
        Ok(true)
    }

    /// Bytes of a direct buffer. The program must not change them during the call.
    pub(crate) fn direct(&self, buffer: Buffer<'_>, start: jint, size: jint) -> Result<&[u8]> {
        let start = self.direct_start(buffer, start, size)?;
        // SAFETY: the buffer has these bytes, and its reference keeps it alive during the call.
        Ok(unsafe { slice::from_raw_parts(start, usize::try_from(size).unwrap_or(0)) })
    }

    /// Copies as many bytes as `size` allows to a direct buffer.
    pub(crate) fn fill_direct(
        &self,
        buffer: Buffer<'_>,
        start: jint,
        size: jint,
        bytes: &[u8],
    ) -> Result<()> {
        let start = self.direct_start(buffer, start, size)?;
        let count = bytes.len().min(usize::try_from(size).unwrap_or(0));
        // SAFETY: the buffer has these bytes, and is memory of its own.
        unsafe { ptr::copy(bytes.as_ptr(), start, count) };
        Ok(())
    }

    /// Where `size` bytes of a direct buffer begin.
    fn direct_start(&self, buffer: Buffer<'_>, start: jint, size: jint) -> Result<*mut u8> {
        if buffer.0.raw.is_null() {
            return Err(Error::invalid("a buffer is null"));
        }
        // SAFETY: a reference that is not null is valid during the call.
        let (address, capacity) = unsafe {
            let address = table!(self, v1_4, GetDirectBufferAddress, buffer.0.raw);
            (address, table!(self, v1_4, GetDirectBufferCapacity, buffer.0.raw))
        };
        let is_inside =
            start >= 0 && size >= 0 && jlong::from(start) + jlong::from(size) <= capacity;
        if address.is_null() && size > 0 || !is_inside {
            return Err(Error::invalid("a buffer is not direct, or is smaller than its bounds"));
        }
        if address.is_null() {
            return Ok(NonNull::dangling().as_ptr());
        }
        // SAFETY: `start` is inside the buffer.
        Ok(unsafe { address.cast::<u8>().add(usize::try_from(start).unwrap_or(0)) })
    }

    /// Throws a `ShingleException` of this code and these texts, at this byte of its file or -1.
    /// The class is there: a class that calls the library has the same loader, and is alive.
    pub(crate) fn throw(&self, thrower: &Thrower, code: jint, texts: [&str; 3], offset: jlong) {
        let mut arrays = [ptr::null_mut(); 3];
        for (array, text) in arrays.iter_mut().zip(texts) {
            match self.new_bytes(text.as_bytes()) {
                Ok(made) if !made.is_null() => *array = made.0.raw,
                _ => return, // Java has no memory, which is an error that is pending.
            }
        }
        let [message, remedy, file] = arrays;
        let arguments = [
            jvalue { i: code },
            jvalue { l: message },
            jvalue { l: remedy },
            jvalue { l: file },
            jvalue { j: offset },
        ];
        // SAFETY: the class and the constructor belong together, and the arguments are what its
        // signature says. Without memory there is no object, and an error is pending.
        unsafe {
            let class = table!(self, v1_2, NewLocalRef, thrower.class.0);
            if class.is_null() {
                return;
            }
            let made =
                table!(self, v1_1, NewObjectA, class, thrower.constructor.0, arguments.as_ptr());
            if !made.is_null() {
                table!(self, v1_1, Throw, made);
            }
        }
    }

    /// The exception's class and constructor. The reference is weak, so that the class and its
    /// loader can be collected. None, with Java's own error pending, where they are not found.
    pub(crate) fn thrower(&self, class: &CStr, signature: &CStr) -> Option<Thrower> {
        // SAFETY: the names are texts that end with zero; null results are checked before use.
        unsafe {
            let local = table!(self, v1_1, FindClass, class.as_ptr());
            if local.is_null() {
                return None;
            }
            let name = c"<init>".as_ptr();
            let constructor = table!(self, v1_1, GetMethodID, local, name, signature.as_ptr());
            if constructor.is_null() {
                return None;
            }
            let class = table!(self, v1_2, NewWeakGlobalRef, local);
            let thrower = Thrower { class: Global(class), constructor: Global(constructor) };
            (!class.is_null()).then_some(thrower)
        }
    }

    /// Frees what [`Env::thrower`] has made.
    pub(crate) fn forget(&self, thrower: Thrower) {
        // SAFETY: the reference is weak and global, and this is its only owner.
        unsafe { table!(self, v1_2, DeleteWeakGlobalRef, thrower.class.0) }
    }
}

/// A reference that every thread may use.
struct Global<T>(*mut T);

// SAFETY: global references, weak ones too, and the numbers of methods belong to no thread.
unsafe impl<T> Send for Global<T> {}
// SAFETY: as above; they are never changed.
unsafe impl<T> Sync for Global<T> {}

/// A size as Java counts.
fn java_size(size: usize) -> Result<jint> {
    jint::try_from(size).map_err(|_| {
        Error::invalid(format!("{size} bytes are more than a Java array has: at most 2147483647"))
    })
}

/// The class and the constructor of an exception.
pub(crate) struct Thrower {
    class: Global<_jobject>,
    constructor: Global<_jmethodID>,
}

/// The Java machine, whatever the thread.
#[repr(transparent)]
pub struct Machine(NonNull<JavaVM>);

impl Machine {
    /// The machine as the current thread sees it.
    pub(crate) fn env(&self) -> Option<Env<'_>> {
        let (machine, mut env) = (self.0.as_ptr(), ptr::null_mut());
        // SAFETY: the machine gives itself, and puts the current thread's table in its place.
        let status = unsafe { ((**machine).v1_2.GetEnv)(machine, &mut env, JNI_VERSION_1_8) };
        let raw = NonNull::new(env.cast::<JNIEnv>()).filter(|_| status == JNI_OK)?;
        Some(Env { raw, call: PhantomData })
    }
}
